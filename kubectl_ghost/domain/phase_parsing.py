"""How users write down what a pod puts on its GPUs: percentages, memory, phases and presets.

Phases are separated by commas: `NAME[=DURATION[/PERIOD]][:util=...][:memory=...]`. Figures that are not given are those
of PHASES. `util=20..60` climbs over the phase's duration; in a phase without one it is the middle.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from kubectl_ghost.domain.durations import parse_duration
from kubectl_ghost.domain.phases import Interruption, LoadPlan, Memory, Phase
from kubectl_ghost.domain.quantity import parse_quantity
from kubectl_ghost.domain.wording import quoted

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%?")
_RANGE = re.compile(r"(.+?)(?:\.\.|-)(.+)")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_MIB = 2**20
_MOST_PHASES = 100
"""Of one pod: every scrape goes through them."""

PHASES = {
    "download": (0.0, Memory(2)),
    "warmup": (30.0, Memory(40)),
    "training": (95.0, Memory(80)),
    "evaluation": (60.0, Memory(80)),
    "inference": (45.0, Memory(70)),
    "checkpoint": (5.0, Memory(80)),
    "idle": (0.0, Memory(10)),
}
"""Utilisation in percent and memory of phases by their names. CHOICE, all of them."""
OTHER_PHASE = (85.0, Memory(60))
"""Of a phase with any other name, and of a workload that says nothing. CHOICE."""
PRESETS = {
    "training": "download=2m,warmup=5m:util=20..60,training:util=95,checkpoint=30s/10m",
    "inference": "download=1m,warmup=1m:util=5,inference:util=45",
    "notebook-idle": "idle:util=3:memory=10%",
}
"""Names that stand for phases. CHOICE, all of them."""
_FORM = "Write phases such as " + PRESETS["training"] + f", or one of {', '.join(PRESETS)}"


def parse_percent(text: str) -> float:
    """`37`, `37%`, `2.5`.

    Raises:
        ValueError: if it is no number from 0 to 100.
    """
    match = _PERCENT.fullmatch(text.strip())
    if match is None or float(match.group(1)) > 100:
        raise ValueError(f"{quoted(text)} is no percentage from 0 to 100")
    return float(match.group(1))


def parse_span(text: str) -> tuple[float, float]:
    """`20..60` or `20-60`, or one percentage for both ends; the ends as they are written.

    Raises:
        ValueError: if an end is no percentage.
    """
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        return parse_percent(text), parse_percent(text)
    return parse_percent(match.group(1)), parse_percent(match.group(2))


def parse_memory(text: str) -> Memory:
    """`60%`, or a quantity of at least a MiB such as `40Gi`.

    Raises:
        ValueError: if it is neither, or a number without a unit, which Kubernetes would take for bytes.
    """
    wanted = text.strip()
    if wanted.endswith("%"):
        return Memory(parse_percent(wanted))
    try:
        amount = parse_quantity(wanted)
    except ArithmeticError as error:
        raise ValueError(f"{quoted(text)} is no amount of memory") from error
    if amount < _MIB or amount > 2**60:
        raise ValueError(f"{quoted(text)} is no amount of memory, such as 40Gi or 60%")
    return Memory(mib=int(amount // _MIB))


@lru_cache(maxsize=256)
def parse_phases(text: str) -> LoadPlan:
    """A preset's name, or phases as they are described above.

    Raises:
        ValueError: saying which part is not understood.
    """
    items = [item.strip() for item in PRESETS.get(text.strip(), text).split(",")]
    if len(items) > _MOST_PHASES:
        raise ValueError(f"{quoted(text)} has more than {_MOST_PHASES} phases")
    parsed = [_item(item) for item in items]
    phases = [item for item in parsed if isinstance(item, Phase)]
    interruptions = [item for item in parsed if isinstance(item, Interruption)]
    _check(phases, interruptions)
    return LoadPlan(tuple(phases), interruptions[0] if interruptions else None)


def _check(phases: Sequence[Phase], interruptions: Sequence[Interruption]) -> None:
    if not phases:
        raise ValueError(f"there is no phase. {_FORM}")
    early = [phase.name for phase in phases[:-1] if phase.seconds == math.inf]
    if early:
        raise ValueError(f"phase {early[0]!r} has no duration and is not the last one")
    if len(interruptions) > 1:
        raise ValueError(f"only one phase can come back, not {' and '.join(item.name for item in interruptions)}")
    if interruptions and phases[-1].seconds != math.inf:
        raise ValueError(f"{interruptions[0].name!r} comes back within a phase without a duration, and there is none")


def _item(text: str) -> Phase | Interruption:
    head, *settings = text.split(":")
    name, timed, time = head.partition("=")
    name = name.strip()
    if _NAME.fullmatch(name) is None or len(name) > 63:
        raise ValueError(f"{quoted(text)} is no phase. {_FORM}")
    percent, memory = PHASES.get(name, OTHER_PHASE)
    begins = ends = percent
    for setting in settings:
        key, _, value = setting.partition("=")
        if key.strip() == "util":
            begins, ends = parse_span(value)
        elif key.strip() == "memory":
            memory = parse_memory(value)
        else:
            raise ValueError(f"{name!r}: {quoted(setting)} is neither util=... nor memory=...")
    duration, returns, period = time.partition("/")
    if returns:
        return _interruption(name, duration, period, (begins + ends) / 2)
    phase = Phase(name, parse_duration(duration.strip()) if timed else math.inf, begins, ends, memory)
    if phase.seconds == 0:
        raise ValueError(f"{name!r} lasts no time")
    if phase.seconds == math.inf and begins != ends:
        return replace(phase, begins=(begins + ends) / 2, ends=(begins + ends) / 2, spread=abs(ends - begins) / 2)
    return phase


def _interruption(name: str, duration: str, period: str, utilization: float) -> Interruption:
    seconds, every = parse_duration(duration.strip()), parse_duration(period.strip())
    if not 0 < seconds < every:
        raise ValueError(
            f"{name!r} has to last some time, and less than the {period.strip()} after which it comes back"
        )
    return Interruption(name, seconds, every, utilization)
