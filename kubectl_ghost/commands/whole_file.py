"""Writing a file that has its name only once it is whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from kubectl_ghost.domain.errors import GhostError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """A file to write to, which takes its name in the end: one that was cut off would be taken for a shorter one.

    Its folder is made. A link is followed. What is there and no plain file, such as a pipe or a device, is written to
    as it is: in the place of a device of the machine's, root would leave a file.

    Raises:
        GhostError: it cannot be written; what was there is still there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        real = Path(os.path.realpath(path))
        if real.exists() and not real.is_file():
            with real.open("w", encoding="utf-8") as file:
                yield file
        else:
            with _replacing(real) as file:
                yield file
    except OSError as error:
        raise GhostError(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    # Two runs at once have two, and the name is short enough wherever that of the file is.
    partial = path.with_name(f".{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
