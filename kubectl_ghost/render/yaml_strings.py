"""The styles of a YAML string: which of them says exactly this text, and nothing else, to every parser.

The choice is the Go library's, so that output equals kubectl's; where it and PyYAML take a plain word differently, the
word is quoted.
"""

from __future__ import annotations

import re
from functools import cmp_to_key, lru_cache

from kubectl_ghost.render.escape import replace_surrogates

_WORD = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
"""Plain in every parser, if it is not one of the reserved words."""
_RESERVED = frozenset(
    ("", "~", "null", "y", "yes", "true", "on", "n", "no", "false", "off", ".nan", ".inf", "+.inf", "-.inf", "<<", "=")
)
"""In any case of letters; `=` and `<<` are PyYAML's."""
_NUMBER = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+"
    r"|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"
    r"|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)"  # 1:20 is eighty in YAML 1.1
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ][-+0-9:.Zz ]*)?")
_INDICATOR = re.compile(r"[#,\[\]{}&*!|>'\"%@`]|[?:-](?: |\Z)|---|\.\.\.")
"""At the start of a text: what would begin something other than a plain string."""
_INSIDE = re.compile(r":(?: |\Z)| #")
_SPECIAL = re.compile(r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
"""What only double quotes can say: control characters, line separators, and all beyond the first plane."""
_QUOTED = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v",
    "\f": "\\f", "\r": "\\r", "\x1b": "\\e", "\x85": "\\N", "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip


@lru_cache(maxsize=32768)
def inline(text: str) -> str:
    """A string on one line, as a value or as a key."""
    if _WORD.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    text = replace_surrogates(text)
    if "\n" in text or _SPECIAL.search(text) or _resolves(text):
        return _double_quoted(text)
    if text[0] == " " or text[-1] == " " or _INDICATOR.match(text) or _INSIDE.search(text):
        return "'" + text.replace("'", "''") + "'"
    return text


def block(text: str, pad: str) -> str:
    """A string of several lines, as a literal block where one can say it.

    Args:
        text: contains a newline.
        pad: what its lines are indented by.
    """
    text = replace_surrogates(text)
    if text.endswith(" ") or " \n" in text or _SPECIAL.search(text):
        return _double_quoted(text)
    # Without the digit, the blanks of the first line would count as indentation.
    header = "|2" if text[0] in " \n" else "|"
    lines = text.split("\n")
    if lines[-1]:
        header += "-"
    else:
        lines.pop()
        if not lines[-1]:
            header += "+"
    return "\n".join([header, *(pad + line if line else "" for line in lines)])


def _resolves(text: str) -> bool:
    """Whether some parser would take the bare text for something other than a string."""
    return text.lower() in _RESERVED or bool(_NUMBER.fullmatch(text) or _DATE.fullmatch(text))


def _double_quoted(text: str) -> str:
    return '"' + _QUOTED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _compare_keys(first: str, second: str) -> int:
    """The Go library's order of keys: signs, numbers by value, letters; decided where the keys first differ."""
    index = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    if index is None:
        return len(first) - len(second)
    a, b = first[index], second[index]
    if a.isalpha() or b.isalpha():
        both = a.isalpha() and b.isalpha()
        return ord(a) - ord(b) if both else a.isalpha() - b.isalpha()
    # A zero is a leading one, which counts for nothing, unless the digits before it say otherwise.
    inner = "0" in (a, b) and bool(_digits_before(first, index).strip("0"))
    first_digits, second_digits = _digits_from(first, index), _digits_from(second, index)
    prefix = "1" if inner else "0"
    by_value = int(prefix + first_digits) - int(prefix + second_digits)
    return by_value or len(first_digits) - len(second_digits) or ord(a) - ord(b)


def _digits_from(text: str, start: int) -> str:
    end = start
    while end < len(text) and text[end] in "0123456789":
        end += 1
    return text[start:end]


def _digits_before(text: str, end: int) -> str:
    return text[len(text[:end].rstrip("0123456789")) : end]


NATURAL_ORDER = cmp_to_key(_compare_keys)
