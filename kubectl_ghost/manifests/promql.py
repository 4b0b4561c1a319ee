"""PromQL, as far as rules and dashboards say the same things in it."""

from __future__ import annotations

from collections.abc import Iterable


def selector(field: str, *matchers: str) -> str:
    """The series of a field, those that match: `FIELD{a="b"}`."""
    given = [matcher for matcher in matchers if matcher]
    return f"{field}{{{', '.join(given)}}}" if given else field


def largest(labels: Iterable[str], expression: str) -> str:
    """One series for each set of labels.

    What belongs to a GPU is repeated on each of its MIG instances and, where it is shared, for each of its pods; and
    the pod's labels change under a GPU that is broken. `max` makes one lasting series of them.
    """
    return f"max by ({', '.join(labels)}) ({expression})"


def any_of(*expressions: str) -> str:
    """The first of several expressions that has a series, for each set of labels."""
    return "\nor\n".join(expressions)
