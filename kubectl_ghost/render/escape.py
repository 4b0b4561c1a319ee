"""What may reach a terminal: table cells come from annotations and labels that anyone on the cluster can write."""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks that reverse or break a line, and halves of surrogate pairs, which cannot be written."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_KUBECTL = {"\x1b": "^[", "\r": "\\r", "\n": "\\n", "\t": "\\t"}


def escape_cell(text: str) -> str:
    """Make a cell safe to print and one line long.

    The escape and carriage return characters become kubectl's `^[` and `\\r`; where kubectl passes others through or
    cuts the text at a newline, they are spelled out, so that nothing is hidden and a row stays a row.
    """
    # isprintable() is an order of magnitude quicker than the expression, and true for nearly every cell.
    if text.isprintable():
        return text
    return _UNSAFE.sub(_spell, text)


def replace_surrogates(text: str) -> str:
    """Replace the halves of surrogate pairs that JSON can carry but UTF-8 cannot, as Go does when it decodes."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", text)


def _spell(match: re.Match[str]) -> str:
    character = match.group()
    known = _KUBECTL.get(character)
    if known is not None:
        return known
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
