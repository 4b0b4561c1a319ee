"""kubectl's AGE column: two or three significant figures of a duration.

A port of HumanDuration in k8s.io/apimachinery/pkg/util/duration, whose table of cases is in the tests.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNKNOWN = "<unknown>"

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def age(timestamp: str | None, now: datetime) -> str:
    """How long ago a timestamp of the API server was.

    Args:
        timestamp: RFC 3339, as in `metadata.creationTimestamp`.
        now: the moment to count from, with its time zone.

    Returns:
        for example `5s`, `2m5s`, `3h12m`, `8d`; `<unknown>` where the timestamp is absent or is none, `<invalid>`
        where it lies in the future.
    """
    if not timestamp:
        return UNKNOWN
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return UNKNOWN
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return human_duration(now - moment)


def human_duration(duration: timedelta) -> str:
    """Render a duration as kubectl does; `<invalid>` where it is two seconds or more below zero."""
    # Clocks of machines differ a little: up to two seconds of future count as now.
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    """Two units, the smaller left out where it is zero."""
    rest = seconds % large // small
    head = f"{seconds // large}{large_name}"
    return f"{head}{rest}{small_name}" if rest else head
