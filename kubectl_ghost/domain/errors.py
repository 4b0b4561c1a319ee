"""The errors that a user of the tool is meant to read.

One class, so that the command line has one funnel: whatever is raised as a GhostError is printed as `error: <message>`
with its hint on a line of its own, without a traceback. Anything else that escapes is a defect of ours.
"""

from __future__ import annotations


class GhostError(Exception):
    """Something the user can act on.

    Args:
        message: what failed and on which object, one line, no final full stop, starting in lower case.
        hint: what to do next; printed on a line of its own.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(GhostError):
    """The request itself is wrong; nothing has been read or written."""


class GuardRefusal(GhostError):
    """A write that the guard does not permit. Reaching this is a defect of ours, never the user's."""
