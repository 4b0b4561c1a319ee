"""What came of a soak, as a table, and what of it is a failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.soak.course import Seen
from tests.soak.scraping import Tally

_WARM_UP = 60.0
"""Seconds until memory is what it should stay."""
_WINDOW = 10.0
_MEMORY_TOLERANCE = 0.10
"""By how much of it memory may have grown in the end. CHOICE."""
_MADE_OF_DUE = 0.95
"""How many of the scrapes that were due must have been made: else it is this program that was measured."""


def rows(seen: Seen, tally: Tally, peak: float) -> Iterator[tuple[str, str]]:
    """The table: a name and its figures.

    Args:
        peak: the most memory that the agent has had, in MB.
    """
    latencies = [1000 * percentile(tally.latencies, percent) for percent in (50, 99, 100)]
    first, last = _memory(seen)
    yield "length", f"{seen.seconds:.0f} s, {seen.churned:.0f} s of it with churn"
    yield "scrapes", f"{len(tally.latencies)} of {tally.due} due, {tally.failed} failed"
    yield "latency p50 / p99 / most", " / ".join(f"{value:.1f} ms" for value in latencies)
    yield "pods churned", f"{seen.bound}, {seen.bound / seen.churned:.0f} a second"
    yield "behind the cluster at most", f"{tally.lag:.2f} s"
    yield "quiet moments compared", f"{len(seen.quiet)}, quiet after {max(seen.quiet):.1f} s at most"
    yield "counters that fell", str(tally.fallen)
    yield "memory after warm-up / end / peak", f"{first:.0f} / {last:.0f} / {peak:.0f} MB"
    yield "CPU", f"{seen.cpu:.1f} s, {100 * seen.cpu / seen.seconds:.1f} % of a core"


def failures(seen: Seen, tally: Tally) -> Iterator[str]:
    """What was wrong; nothing if all is well."""
    yield from seen.problems
    yield from tally.problems
    if not seen.seconds:
        return
    made = len(tally.latencies) + tally.failed
    if made < _MADE_OF_DUE * tally.due:
        yield f"only {made} of {tally.due} scrapes were made"
    first, last = _memory(seen)
    if last > (1 + _MEMORY_TOLERANCE) * first:
        yield f"memory grew from {first:.0f} to {last:.0f} MB, by more than {_MEMORY_TOLERANCE:.0%}"


def _memory(seen: Seen) -> tuple[float, float]:
    """After the warm-up, of which a short soak has a short one, and at the end."""
    warm = min(_WARM_UP, seen.seconds / 3)
    return seen.resident(warm - _WINDOW / 2, warm + _WINDOW / 2), seen.resident(seen.seconds - _WINDOW, seen.seconds)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that so many percent are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0
