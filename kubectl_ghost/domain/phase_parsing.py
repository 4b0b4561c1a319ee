"""How users write down what a pod puts on its GPUs: percentages, memory, phases and presets.

Phases are separated by commas: `NAME[=DURATION[/PERIOD]][:util=...][:memory=...]`. Figures that are not given are those
of PHASES. `util=20..60` climbs over the phase's duration; in a phase without one, or that comes back, it is the middle.
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

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%?")
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
_FIGURES = {"util": "95", "memory": "60%"}
"""The keys of figures in phases, and what one may look like."""
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
    """`60%`, or a quantity such as `40Gi`: none, or at least a MiB.

    Raises:
        ValueError: if it is neither, or a number without a unit, which Kubernetes would take for bytes.
    """
    wanted = text.strip()
    if wanted.endswith("%"):
        return Memory(parse_percent(wanted))
    try:
        amount = parse_quantity(wanted)
    except (ValueError, ArithmeticError):
        amount = None
    if amount is None or 0 < amount < _MIB or not 0 <= amount <= 2**60:
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
    phases: list[Phase] = []
    interruptions: list[Interruption] = []
    for item in items:
        parsed = _item(item)
        _check(parsed, phases, interruptions)
        if isinstance(parsed, Phase):
            phases.append(parsed)
        else:
            interruptions.append(parsed)
    return LoadPlan(tuple(phases), interruptions[0] if interruptions else None)


def _check(item: Phase | Interruption, phases: Sequence[Phase], interruptions: Sequence[Interruption]) -> None:
    """Refuse what cannot come after these phases and what comes back in them.

    Raises:
        ValueError: naming both.
    """
    if isinstance(item, Phase):
        if phases and phases[-1].seconds == math.inf:
            raise ValueError(f"phase {phases[-1].name!r} has no duration and is not the last one")
    elif not phases:
        raise ValueError(f"phase {item.name!r} comes back within the phase before it, and there is none")
    elif phases[-1].seconds != math.inf:
        raise ValueError(f"{item.name!r} comes back within a phase without a duration, and {phases[-1].name!r} has one")
    elif interruptions:
        raise ValueError(f"only one phase can come back, not {interruptions[0].name} and {item.name}")


def _item(text: str) -> Phase | Interruption:
    head, *settings = text.split(":")
    name, timed, time = head.partition("=")
    name = name.strip()
    if _NAME.fullmatch(name) is None or len(name) > 63:
        raise ValueError(f"{quoted(text)} is no phase. {_FORM}")
    if name in _FIGURES:
        raise ValueError(f"{name!r} is a figure of a phase, as in training:{name}={_FIGURES[name]}")
    percent, memory = PHASES.get(name, OTHER_PHASE)
    figures = _figures(name, settings)
    begins, ends = parse_span(figures["util"]) if "util" in figures else (percent, percent)
    own_memory = parse_memory(figures["memory"]) if "memory" in figures else None
    duration, returns, period = time.partition("/")
    if returns:
        seconds, every = _recurrence(name, duration, period)
        return Interruption(name, seconds, every, (begins + ends) / 2, abs(ends - begins) / 2, own_memory)
    phase = Phase(name, parse_duration(duration.strip()) if timed else math.inf, begins, ends, own_memory or memory)
    if phase.seconds == 0:
        raise ValueError(f"{name!r} lasts no time")
    if phase.seconds == math.inf and begins != ends:
        return replace(phase, begins=(begins + ends) / 2, ends=(begins + ends) / 2, spread=abs(ends - begins) / 2)
    return phase


def _figures(name: str, settings: Sequence[str]) -> dict[str, str]:
    """What stands for `util` and `memory` behind the colons of a phase."""
    figures: dict[str, str] = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        key = key.strip()
        if key not in _FIGURES:
            raise ValueError(f"{name!r}: {quoted(setting)} is neither util=... nor memory=...")
        if key in figures:
            raise ValueError(f"{name!r}: {key} is given twice")
        figures[key] = value
    return figures


def _recurrence(name: str, duration: str, period: str) -> tuple[float, float]:
    seconds, every = parse_duration(duration.strip()), parse_duration(period.strip())
    if not 0 < seconds < every:
        raise ValueError(
            f"{name!r} has to last some time, and less than the {quoted(period.strip())} after which it comes back"
        )
    return seconds, every
