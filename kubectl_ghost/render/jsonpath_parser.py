"""From the text of a JSONPath template to its pieces: a port of the parser in k8s.io/client-go/util/jsonpath.

Its peculiarities are kept (`['a.b']` is two fields unless the dot is escaped, a key in double quotes is refused), since
a template that works here has to work with kubectl and the other way round.
"""

from __future__ import annotations

import re
from typing import NoReturn

from kubectl_ghost.render.jsonpath_nodes import (
    Constant,
    Field,
    Filter,
    Group,
    JsonPathError,
    Keyword,
    Node,
    Recursive,
    Slice,
    Text,
    Union,
    Wildcard,
)

_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_FIELD = re.compile(r"(?:\\.?|[^ \t\r\n.,\[\]$@{}\\])*", re.DOTALL)
_IDENTIFIER = re.compile(r"[^ \t\r\n.,\[\]$@{}]*")
_NUMBER = re.compile(r"[+-]?[0-9.]*")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)|\\", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}


def parse(text: str) -> tuple[Text | Group, ...]:
    """Split a template into its text and its actions.

    Raises:
        JsonPathError: with the words of kubectl's parser.
    """
    pieces: list[Text | Group] = []
    position = 0
    while (brace := text.find("{", position)) >= 0:
        if brace > position:
            pieces.append(Text(text[position:brace]))
        action = _Action(text, brace + 1)
        pieces.append(action.parse())
        position = action.position
    if position < len(text):
        pieces.append(Text(text[position:]))
    return tuple(pieces)


def _parse_action(text: str) -> Group:
    """The pieces of a part of an action, which the grammar treats as an action of its own."""
    action = _Action(f"{{{text}}}", 1)
    return action.parse()


class _Action:
    """A reader of what stands between two braces."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.nodes: list[Node] = []

    def parse(self) -> Group:
        """Read up to and including the closing brace."""
        while True:
            character = self._next()
            if character in ("", "\n", "\r"):
                _fail("unclosed action")
            if character == "}":
                return Group(tuple(self.nodes))
            self._piece(character)

    def _piece(self, character: str) -> None:
        if character in " @$":
            return
        if character == "[":
            self._filter() if self.text.startswith("?(", self.position) else self._array()
        elif character in "\"'":
            self._quote(character)
        elif character == ".":
            self._recursive() if self.text.startswith(".", self.position) else self._field()
        elif character in "+-" or character.isdecimal():
            self._number()
        elif character == "_" or character.isalpha():
            self._identifier()
        else:
            _fail(f"unrecognized character in action: U+{ord(character):04X} '{character}'")

    def _next(self) -> str:
        character = self.text[self.position : self.position + 1]
        self.position += len(character)
        return character

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.position)
        assert match is not None  # each of the patterns matches the empty string
        self.position = match.end()
        return match.group()

    def _field(self) -> None:
        name = self._take(_FIELD)
        self.nodes.append(Wildcard() if name == "*" else Field(name.replace("\\", "")))

    def _recursive(self) -> None:
        if self.nodes and isinstance(self.nodes[-1], Recursive):
            _fail("invalid multiple recursive descent")
        self.position += 1
        self.nodes.append(Recursive())
        following = self.text[self.position : self.position + 1]
        if following == "_" or following.isalnum():
            self._field()

    def _identifier(self) -> None:
        self.position -= 1
        word = self._take(_IDENTIFIER)
        self.nodes.append(Constant(word == "true") if word in ("true", "false") else Keyword(word))

    def _number(self) -> None:
        self.position -= 1
        digits = self._take(_NUMBER)
        try:
            self.nodes.append(Constant(float(digits) if "." in digits else int(digits)))
        except ValueError:
            _fail(f"cannot parse number {digits}")

    def _quote(self, mark: str) -> None:
        start = self.position
        while (character := self._next()) != mark or self.text[self.position - 2] == "\\":
            if character in ("", "\n"):
                _fail("unterminated quoted string")
        self.nodes.append(Text(_unquote(self.text[start : self.position - 1], mark)))

    def _array(self) -> None:
        end = self.text.find("]", self.position)
        content = self.text[self.position : end]
        if end < 0 or "\n" in content:
            _fail("unterminated array")
        self.position = end + 1
        parts = content.split(",")
        if len(parts) > 1:
            self.nodes.append(Union(tuple(_parse_action(f"[{part.strip(' ')}]") for part in parts)))
        elif key := _KEY.fullmatch(content):
            self.nodes.extend(_parse_action(f".{key[1]}").nodes)
        else:
            self.nodes.append(_slice(":" if content == "*" else content))

    def _filter(self) -> None:
        self.position += len("?(")
        condition = self._condition()
        if self._next() != "]":
            _fail("unclosed array expect ]")
        comparison = _COMPARISON.fullmatch(condition)
        if comparison is None:
            self.nodes.append(Filter(_parse_action(condition)))
        else:
            left, sign, right = comparison.groups()
            self.nodes.append(Filter(_parse_action(left), sign, _parse_action(right)))

    def _condition(self) -> str:
        """Read up to the closing parenthesis that is not within the one quoted string there may be."""
        start = self.position
        mark, closed = "", False
        while True:
            character = self._next()
            if character in ("", "\n"):
                _fail("unterminated filter")
            if character in "\"'":
                if not mark:
                    mark = character
                elif character == mark and self.text[self.position - 2] != "\\":
                    closed = True
            elif character == ")" and bool(mark) == closed:
                return self.text[start : self.position - 1]


def _slice(content: str) -> Slice:
    match = _SLICE.fullmatch(content)
    if match is None:
        _fail(f"invalid array index {content}")
    start, end, step = match[1], match[2], match[3]
    first = _index(start)
    if end is None:
        return Slice(first, (first or 0) + 1, _index(step), one=True)
    return Slice(first, _index(end[1:]), _index(step and step[1:]))


def _index(text: str | None) -> int | None:
    if not text:
        return None
    if text == "-":
        _fail("array index - is not a number")
    return int(text)


def _unquote(text: str, mark: str) -> str:
    def decode(match: re.Match[str]) -> str:
        code = match[1]
        if code is not None and (code in _LETTERS or code == mark):
            return _LETTERS.get(code, code)
        if code is None or len(code) == 1:
            _fail(f"unquote string {mark}{text}{mark} error invalid syntax")
        number = int(code[1:], 16) if code[0] in "xuU" else int(code, 8)
        try:
            return chr(number)
        except ValueError:
            _fail(f"unquote string {mark}{text}{mark} error invalid syntax")

    return _ESCAPE.sub(decode, text)


def _fail(message: str) -> NoReturn:
    raise JsonPathError(message)
