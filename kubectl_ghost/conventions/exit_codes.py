"""Exit codes: kubectl's, with click's 2 for a command line that is not understood and the shell's 130 for Ctrl-C."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process returns. An idempotent command that found nothing to do returns OK, as kubectl's do."""

    OK = 0
    ERROR = 1
    USAGE = 2
    INTERRUPTED = 130
