"""The time, as it is written into objects. The domain never asks for it: it is handed in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def moment() -> datetime:
    """The time, to reckon with."""
    return datetime.now(UTC)


def now() -> str:
    """The time in RFC 3339, to the second, as Kubernetes writes it."""
    return stamp(moment())


def after(seconds: float) -> str:
    """The time in so many seconds."""
    return stamp(moment() + timedelta(seconds=seconds))


def stamp(time: datetime) -> str:
    """A time as text; such texts compare as the times do."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
