"""What a JSONPath template is made of, and how each piece walks decoded JSON.

Every piece takes the values found so far to the next ones, as in k8s.io/client-go/util/jsonpath, with missing keys
allowed: a key that is not there yields nothing. Maps are walked in the order they came in, where Go's order is random.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.render.gotext import go_text, go_type

Values = list[Any]


class JsonPathError(InputError):
    """A template that cannot be parsed, or does not fit the object; the message is kubectl's, without its preamble."""


class Node(Protocol):
    """A piece of a template."""

    def walk(self, values: Values) -> Values:
        """Take the values found so far to the next ones.

        Raises:
            JsonPathError: the piece cannot apply to such a value.
        """


@dataclass(frozen=True, slots=True)
class Text:
    text: str

    def walk(self, values: Values) -> Values:
        return [self.text]


@dataclass(frozen=True, slots=True)
class Constant:
    value: int | float | bool

    def walk(self, values: Values) -> Values:
        return [self.value] * len(values)


@dataclass(frozen=True, slots=True)
class Field:
    name: str

    def walk(self, values: Values) -> Values:
        name = self.name
        return [value[name] for value in values if isinstance(value, dict) and name in value]


@dataclass(frozen=True, slots=True)
class Wildcard:
    def walk(self, values: Values) -> Values:
        return [child for value in values for child in _children(value)]


@dataclass(frozen=True, slots=True)
class Recursive:
    """`..`: every value that has children, then its descendants."""

    def walk(self, values: Values) -> Values:
        found: Values = []
        for value in values:
            children = _children(value)
            if children:
                found.append(value)
                found += self.walk(children)
        return found


@dataclass(frozen=True, slots=True)
class Slice:
    """`[start:end:step]`; `[n]` is `[n:n+1]` with `one` set, so that `[-1]` ends where the list does."""

    start: int | None
    end: int | None
    step: int | None
    one: bool = False

    def walk(self, values: Values) -> Values:
        found: Values = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JsonPathError(f"{go_type(value)} is not array or slice")
            start, end = self._bounds(len(value))
            if start == end:
                return found
            self._check(start, end, len(value))
            found += value[start : end : self.step or 1]
        return found

    def _bounds(self, length: int) -> tuple[int, int]:
        start = 0 if self.start is None else self.start
        end = length if self.end is None else self.end
        if end < 0 or (end == 0 and self.one):
            end += length
        return (start + length if start < 0 else start), end

    def _check(self, start: int, end: int, length: int) -> None:
        if not 0 <= start < length:
            raise JsonPathError(f"array index out of bounds: index {start}, length {length}")
        if not 0 <= end <= length:
            raise JsonPathError(f"array index out of bounds: index {end - 1}, length {length}")
        if start > end:
            raise JsonPathError(f"starting index {start} is greater than ending index {end}")
        if self.step is not None and self.step <= 0:
            raise JsonPathError("step must be > 0")


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[Group, ...]

    def walk(self, values: Values) -> Values:
        return [found for branch in self.branches for found in branch.walk(values)]


@dataclass(frozen=True, slots=True)
class Keyword:
    """`range` or `end`; which pieces they enclose is the template's business."""

    name: str

    def walk(self, values: Values) -> Values:
        if self.name == "range":
            return values
        if self.name == "end":
            return []
        raise JsonPathError(f"unrecognized identifier {self.name}")


@dataclass(frozen=True, slots=True)
class Group:
    """What stands between one pair of braces."""

    nodes: tuple[Node, ...]

    def walk(self, values: Values) -> Values:
        for node in self.nodes:
            values = node.walk(values)
        return values

    def has(self, keyword: str) -> bool:
        return Keyword(keyword) in self.nodes


@dataclass(frozen=True, slots=True)
class Filter:
    """`[?(left operator right)]`, or `[?(left)]` for what exists."""

    left: Group
    operator: str = "exists"
    right: Group = Group(())

    def walk(self, values: Values) -> Values:
        found: Values = []
        for value in values:
            if not isinstance(value, list):
                raise JsonPathError(f"{go_text(value)} is not array or slice and cannot be filtered")
            found += [item for item in value if self._passes(item)]
        return found

    def _passes(self, item: Any) -> bool:
        if self.operator == "exists":
            try:
                return bool(self.left.walk([item]))
            except JsonPathError:
                return False  # an index out of bounds, say: it is not there
        left, right = self.left.walk([item]), self.right.walk([item])
        if not left or not right:
            return False
        if len(left) > 1 or len(right) > 1:
            raise JsonPathError("can only compare one element at a time")
        return compare(self.operator, left[0], right[0])


_EQUALITY: dict[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "!=": operator.ne}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def compare(sign: str, left: Any, right: Any) -> bool:
    """Compare two scalars of one Go type.

    Raises:
        JsonPathError: they are of different types (`1` and `1.0` are), no scalars, or truth values put in order.
    """
    function = _EQUALITY.get(sign) or _ORDER.get(sign)
    if function is None:
        raise JsonPathError(f"unrecognized filter operator {sign}")
    for value in (left, right):
        if not isinstance(value, str | int | float):
            raise JsonPathError("invalid type for comparison")
    if type(left) is not type(right):
        raise JsonPathError("incompatible types for comparison")
    if isinstance(left, bool) and sign in _ORDER:
        raise JsonPathError("invalid type for comparison")
    return function(left, right)


def _children(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return value
    # Go walks the bytes of a string: that a name has children is why `..` reports it.
    return list(value.encode(errors="replace")) if isinstance(value, str) else []
