"""Durations as users write them, in Go's notation: `300ms`, `90s`, `2m`, `1h30m`, a plain number of seconds, `0`."""

from __future__ import annotations

import re

from kubectl_ghost.domain.wording import quoted

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
LONGEST = 10 * 365 * 86400.0
"""Ten years, in seconds: what is longer is a slip, and no date."""
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")


def parse_duration(text: str) -> float:
    """Seconds of a duration in Go's notation.

    Raises:
        ValueError: if the text is no such duration.
    """
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        seconds = float(text)
    elif re.fullmatch(rf"(?:{_PART.pattern})+", text):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    else:
        raise ValueError(f"invalid duration {quoted(text)}: use a form such as 30s, 5m or 1h30m")
    if seconds > LONGEST:
        raise ValueError(f"invalid duration {quoted(text)}: it is longer than ten years")
    return seconds
