"""Words that several rooms put together alike."""

from __future__ import annotations

_LONGEST_QUOTE = 60


def counted(number: int, noun: str) -> str:
    """`1 GPU`, `3 GPUs`.

    Args:
        noun: one that makes its plural with an s.
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")


def quoted(text: str) -> str:
    """A value as a message repeats it: in quotes, what does not print escaped, cut where it is longer than a line."""
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...")
