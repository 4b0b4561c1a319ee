"""The end of a component's log, which is what a person wants to see when it did not come up."""

from __future__ import annotations

import os
from pathlib import Path

from kubectl_ghost.engine.progress import Progress

_LINES = 20
_LONGEST_LINE = 600
_BYTES = 64 * 1024


def tail(path: Path, lines: int = _LINES) -> list[str]:
    """The last lines of a file, each cut to a readable length; none if there is no such file."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _BYTES))
            text = log.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line[:_LONGEST_LINE] for line in text.splitlines()[-lines:]]


def show_tail(path: Path, progress: Progress) -> None:
    """Report the end of a log under a heading that names it."""
    progress(f"last lines of {path}:")
    for line in tail(path) or ["(empty)"]:
        progress(f"  {line}")
