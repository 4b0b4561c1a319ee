"""`-o custom-columns=NAME:.metadata.name,GPU:.spec.x`: a table whose columns the user names.

Unlike the plain table, headings are printed as given and even where there are no rows, and an empty string is an empty
cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.render.columns import NONE, aligned
from kubectl_ghost.render.escape import escape_cell
from kubectl_ghost.render.gotext import go_text
from kubectl_ghost.render.jsonpath import JsonPath, parse_relaxed


@dataclass(frozen=True, slots=True)
class CustomColumn:
    """A heading and the path of the values below it."""

    header: str
    path: JsonPath


def parse_spec(spec: str) -> list[CustomColumn]:
    """Read the value of `-o custom-columns=`.

    Raises:
        InputError: it is empty, or a part of it is not `HEADING:PATH`.
    """
    if not spec:
        raise InputError("custom-columns format specified but no custom columns given")
    columns = []
    for part in spec.split(","):
        header, colon, path = part.partition(":")
        if not colon:
            raise InputError(f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>")
        columns.append(_column(header, path))
    return columns


def parse_template(text: str) -> list[CustomColumn]:
    """Read the file of `-o custom-columns-file=`: a line of headings and a line of as many paths.

    Raises:
        InputError: a line is missing, or the two differ in length.
    """
    expected = "Expected format is one line of space separated headers, one line of space separated column specs."
    lines = text.splitlines()
    if not lines:
        raise InputError(f"invalid template, missing header line. {expected}")
    if len(lines) < 2:
        raise InputError(f"invalid template, missing spec line. {expected}")
    headers, paths = lines[0].split(), lines[1].split()
    if len(headers) != len(paths):
        raise InputError(f"number of headers ({len(headers)}) and field specifications ({len(paths)}) don't match")
    return [_column(header, path) for header, path in zip(headers, paths, strict=True)]


def custom_table(columns: Sequence[CustomColumn], rows: Sequence[Json], *, headers: bool = True) -> Iterator[str]:
    """Yield the lines of the table, each with its newline.

    Raises:
        JsonPathError: a path does not fit an object; that it finds nothing is no error, and shows as `<none>`.
    """
    return aligned([_cells(column, rows, headers) for column in columns])


def _column(header: str, path: str) -> CustomColumn:
    if not path:
        raise InputError(f"unexpected custom-columns spec: {header}:, expected <header>:<json-path-expr>")
    return CustomColumn(header, parse_relaxed(path))


def _cells(column: CustomColumn, rows: Sequence[Json], headers: bool) -> list[str]:
    cells = [escape_cell(column.header)] if headers else []
    cells += [_cell(column.path, row) for row in rows]
    return cells


def _cell(path: JsonPath, row: Json) -> str:
    found = path.find(row)
    values = [escape_cell(go_text(value)) for piece in found for value in piece]
    if not found or not found[0]:
        values.insert(0, NONE)
    return ",".join(values)
