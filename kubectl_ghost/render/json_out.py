"""JSON as `kubectl get -o json` writes it: keys sorted, indented by four, `<`, `>` and `&` escaped.

The standard library's encoder falls back to slow Python code as soon as it indents; this one does only what plain JSON
data needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from kubectl_ghost.render.escape import replace_surrogates
from kubectl_ghost.render.gotext import json_float

_STEP = "    "
_ESCAPED = re.compile("[<>&\u2028\u2029]")


def compact(value: Any) -> str:
    """One line without blanks: how a JSONPath template prints a map or a list."""
    parts: list[str] = []
    _write(value, None, parts.append)
    return "".join(parts)


def indented(value: Any, level: int = 0) -> str:
    """Many lines, without a final newline.

    Args:
        value: JSON data.
        level: how deep the text will stand; its lines but the first are indented by so many more steps.
    """
    parts: list[str] = []
    _write(value, "\n" + _STEP * level, parts.append)
    return "".join(parts)


def _write(value: Any, newline: str | None, out: Callable[[str], None]) -> None:
    if isinstance(value, str):
        out(_string(value))
    elif isinstance(value, dict):
        _write_mapping(value, newline, out)
    elif isinstance(value, list | tuple):
        _write_sequence(value, newline, out)
    elif value is None:
        out("null")
    elif isinstance(value, bool):
        out("true" if value else "false")
    elif isinstance(value, float):
        out(json_float(value))
    else:
        out(str(value))


def _write_mapping(mapping: dict[str, Any], newline: str | None, out: Callable[[str], None]) -> None:
    if not mapping:
        out("{}")
        return
    inner = None if newline is None else newline + _STEP
    colon = ":" if newline is None else ": "
    lead = "{" + (inner or "")
    for key in sorted(mapping):
        value = mapping[key]
        # Strings are most of any object: a call less for each.
        if isinstance(value, str):
            out(f"{lead}{_string(key)}{colon}{_string(value)}")
        else:
            out(f"{lead}{_string(key)}{colon}")
            _write(value, inner, out)
        lead = "," + (inner or "")
    out((newline or "") + "}")


def _write_sequence(sequence: list[Any] | tuple[Any, ...], newline: str | None, out: Callable[[str], None]) -> None:
    if not sequence:
        out("[]")
        return
    inner = None if newline is None else newline + _STEP
    lead = "[" + (inner or "")
    for value in sequence:
        out(lead)
        _write(value, inner, out)
        lead = "," + (inner or "")
    out((newline or "") + "]")


@lru_cache(maxsize=16384)
def _string(text: str) -> str:
    quoted = encode_basestring(replace_surrogates(text))
    return _ESCAPED.sub(_escape, quoted) if _ESCAPED.search(quoted) else quoted


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"
