"""kubectl's JSONPath templates: `{range .items[*]}{.metadata.name}{"\\n"}{end}`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.render import jsonpath_parser
from kubectl_ghost.render.escape import replace_surrogates
from kubectl_ghost.render.gotext import go_text
from kubectl_ghost.render.jsonpath_nodes import Group, JsonPathError, Text, Values

_RELAXED = re.compile(r"\{\.?([^{}]+)\}|\.?([^{}]+)")


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A parsed template, to be applied to any number of objects."""

    source: str
    pieces: tuple[Text | Group, ...]

    def find(self, data: Any) -> list[Values]:
        """What each piece finds; the pieces of a range once for each of its values.

        Raises:
            JsonPathError: the template does not fit the object. A missing key is no error, it finds nothing.
        """
        return self._run(0, [data], depth=0)[0]

    def render(self, data: Any) -> str:
        """Fill in the template: strings bare, maps and lists as JSON, several values of a piece with blanks between.

        Raises:
            InputError: the template does not fit the object.
        """
        found = self._find_or_explain(data)
        return replace_surrogates("".join(" ".join(map(_text, values)) for values in found))

    def render_json(self, data: Any) -> str:
        """What every piece finds as a JSON list of its own, for `-o jsonpath-as-json=`.

        Raises:
            InputError: the template does not fit the object.
        """
        from kubectl_ghost.render import json_out

        return "".join(json_out.indented(values) + "\n" for values in self._find_or_explain(data))

    def _find_or_explain(self, data: Any) -> list[Values]:
        try:
            return self.find(data)
        except JsonPathError as error:
            source = json.dumps(self.source, ensure_ascii=False)
            raise InputError(f"error executing jsonpath {source}: {error.message}") from error

    def _run(self, start: int, current: Values, depth: int) -> tuple[list[Values], int | None]:
        """Apply the pieces from `start` on; within a range, up to its end, whose index is returned."""
        found: list[Values] = []
        index = start
        while index < len(self.pieces):
            piece = self.pieces[index]
            values = piece.walk(current)
            if isinstance(piece, Group) and piece.has("end"):
                if depth == 0:
                    raise JsonPathError("not in range, nothing to end")
                return found, index
            if isinstance(piece, Group) and piece.has("range"):
                # Without values the range is walked all the same, to find its end.
                index = self._range(index, values, depth, found)
            else:
                found.append(values)
            index += 1
        return found, None

    def _range(self, index: int, values: Values, depth: int, found: list[Values]) -> int:
        """Apply a range to each of its values; the index of its end, or of itself where it has none."""
        end: int | None = None
        for current in [[value] for value in values] or [[]]:
            inner, end = self._run(index + 1, current, depth + 1)
            if values:
                found += inner
        return index if end is None else end


def parse(template: str) -> JsonPath:
    """Parse a template as written after `-o jsonpath=`.

    Raises:
        InputError: `error parsing jsonpath ...`.
    """
    try:
        return JsonPath(template, jsonpath_parser.parse(template))
    except JsonPathError as error:
        raise InputError(f"error parsing jsonpath {template}, {error.message}") from error


def parse_relaxed(expression: str) -> JsonPath:
    """Parse a path as custom columns and `--sort-by` take it: `metadata.name`, with a leading dot, braces, or both.

    Raises:
        JsonPathError: it is no such path.
    """
    match = _RELAXED.fullmatch(expression)
    if match is None:
        raise JsonPathError(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'"
        )
    template = f"{{.{match[1] or match[2]}}}"
    return JsonPath(template, jsonpath_parser.parse(template))


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        from kubectl_ghost.render import json_out

        return json_out.compact(value)
    return "null" if value is None else go_text(value)
