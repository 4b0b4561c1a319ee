"""YAML as `kubectl get -o yaml` writes it, for plain JSON data.

PyYAML needs about twelve seconds for 5,000 nodes. Style (plain, single quotes, double quotes, literal block) and order
of keys are those of the Go library that kubectl uses; long lines are not folded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from kubectl_ghost.render import yaml_strings
from kubectl_ghost.render.gotext import go_text

_Out = Callable[[str], None]
_STEP = "  "
_LONGEST_SIMPLE_KEY = 128
"""Longer keys take the explicit form, `? key`; parsers look ahead no further than 1,024 characters for the colon."""
_EXACT = 2**53
"""From here on, the digits of a float spell another integer than the one it stands for."""
_NATURAL = re.compile(r"[^a-z./-]")
"""What sorts otherwise than by code point: numbers by their value, signs before letters."""


def dump(value: Any) -> str:
    """One document, with its final newline and no separator."""
    parts: list[str] = []
    if isinstance(value, dict) and value:
        _mapping(value, "", "", parts.append)
    elif isinstance(value, list) and value:
        _sequence(value, "", "", parts.append)
    else:
        parts.append(_scalar(value, "") + "\n")
    return "".join(parts)


def dump_all(values: Iterable[Any]) -> Iterator[str]:
    """Several documents, `---` between them as kubectl has it: none before the first, none after the last."""
    for index, value in enumerate(values):
        yield ("---\n" if index else "") + dump(value)


def _mapping(mapping: dict[str, Any], pad: str, lead: str, out: _Out) -> None:
    """Write a block mapping: its first line after `lead`, the others after `pad`."""
    for key, head in _heads(tuple(mapping)):
        value = mapping[key]
        # Strings are most of any object: a call less for each.
        if isinstance(value, str) and "\n" not in value:
            out(f"{lead}{_key(head, pad)} {yaml_strings.inline(value)}\n")
        elif isinstance(value, dict) and value:
            out(f"{lead}{_key(head, pad)}\n")
            inner = pad + _STEP
            _mapping(value, inner, inner, out)
        elif isinstance(value, list) and value:
            out(f"{lead}{_key(head, pad)}\n")
            _sequence(value, pad, pad, out)
        else:
            out(f"{lead}{_key(head, pad)} {_scalar(value, pad)}\n")
        lead = pad


def _sequence(sequence: list[Any], pad: str, lead: str, out: _Out) -> None:
    """Write a block sequence, its dashes not indented, as kubectl has them."""
    for value in sequence:
        if isinstance(value, dict) and value:
            _mapping(value, pad + _STEP, lead + "- ", out)
        elif isinstance(value, list) and value:
            _sequence(value, pad + _STEP, lead + "- ", out)
        else:
            out(f"{lead}- {_scalar(value, pad)}\n")
        lead = pad


def _scalar(value: Any, pad: str) -> str:
    """A value on the rest of its line; a literal block goes on below it."""
    if isinstance(value, str):
        return yaml_strings.block(value, pad + _STEP) if "\n" in value else yaml_strings.inline(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    return str(value)


def _float(value: float) -> str:
    """A number with a point before its exponent: YAML 1.1 takes `1e+21` for a string."""
    # Whole numbers come to kubectl's YAML library as integers; it writes all others as `fmt` does.
    if value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    text = go_text(value)
    mantissa, exponent, digits = text.partition("e")
    return text if not exponent or "." in mantissa else f"{mantissa}.0e{digits}"


def _key(head: str, pad: str) -> str:
    return head if len(head) <= _LONGEST_SIMPLE_KEY + 1 else f"? {head[:-1]}\n{pad}:"


@lru_cache(maxsize=4096)
def _heads(keys: tuple[str, ...]) -> list[tuple[str, str]]:
    """The keys in order, each with its text and colon. Cached: objects of one kind share their sets of keys."""
    order: list[str] = sorted(keys)
    if any(map(_NATURAL.search, order)):
        order.sort(key=yaml_strings.NATURAL_ORDER)
    return [(key, yaml_strings.inline(key) + ":") for key in order]
