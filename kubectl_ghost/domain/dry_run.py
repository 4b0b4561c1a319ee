"""kubectl's --dry-run, which flags, sentences and writes all speak of."""

from __future__ import annotations

from enum import StrEnum


class DryRun(StrEnum):
    """Write; send nothing; or let the server check and forget."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"
