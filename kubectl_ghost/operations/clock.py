"""The time, as it is written into objects. The domain never asks for it: it is handed in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def now() -> str:
    """The time in RFC 3339, to the second, as Kubernetes writes it."""
    return stamp(datetime.now(UTC))


def after(seconds: float) -> str:
    """The time in so many seconds."""
    return stamp(datetime.now(UTC) + timedelta(seconds=seconds))


def stamp(moment: datetime) -> str:
    """A moment as text; such texts compare as the moments do."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
