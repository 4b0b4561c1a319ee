"""The plain table: what kubectl prints when no output format is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kubectl_ghost.domain.keys import Json
from kubectl_ghost.render.escape import escape_cell

NONE = "<none>"
_PADDING = 3
_NARROWEST = 6
"""kubectl's tab writer makes no column but the last narrower than this, padding included."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Args:
        title: the heading; printed in upper case, so without spaces.
        value: from a row to the text of its cell.
        wide: shown only with `-o wide`.
        empty: what stands for an empty cell.
    """

    title: str
    value: Callable[[Json], str]
    wide: bool = False
    empty: str = NONE


def table(
    columns: Sequence[Column], rows: Sequence[Json], *, headers: bool = True, wide: bool = False
) -> Iterator[str]:
    """Yield the lines of a table, each with its newline; none at all, headings included, without rows."""
    if not rows:
        return iter(())
    shown = [column for column in columns if wide or not column.wide]
    return aligned([_cells(column, rows, headers) for column in shown])


def aligned(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of columns of equally many escaped cells: left-justified, three spaces apart, none at the end."""
    padded = [_pad(cells) for cells in columns[:-1]]
    for row in zip(*padded, *columns[-1:], strict=True):
        yield "".join(row).rstrip(" ") + "\n"


def _cells(column: Column, rows: Sequence[Json], headers: bool) -> list[str]:
    value, empty = column.value, column.empty
    cells = [column.title.upper()] if headers else []
    cells += [escape_cell(value(row)) or empty for row in rows]
    return cells


def _pad(cells: Sequence[str]) -> list[str]:
    width = max(max(map(len, cells), default=0) + _PADDING, _NARROWEST)
    return [cell.ljust(width) for cell in cells]
