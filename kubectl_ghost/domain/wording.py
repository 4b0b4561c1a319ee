"""Words that several rooms put together alike."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 GPU`, `3 GPUs`.

    Args:
        noun: one that makes its plural with an s.
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")
