"""A lock between processes that the kernel releases when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubectl_ghost.engine.progress import Progress


@contextmanager
def exclusive(path: Path, progress: Progress, waiting_for: str) -> Iterator[None]:
    """Hold the lock file at `path`; while another process has it, say once what is being waited for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for {waiting_for}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
