"""The phases of a workload: what it puts on its GPUs as a function of its age.

`download=2m,warmup=5m:util=20..60,training:util=95,checkpoint=30s/10m` is a download of two minutes, a warm-up of five
in which utilisation climbs from 20 to 60 %, and training that lasts, for the last 30 s of every 10 min of which a
checkpoint is written: `domain/phase_parsing.py` reads that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a device that a workload takes: a part of it in percent, or so many MiB."""

    percent: float = 0.0
    mib: int | None = None

    def of(self, usable_mib: int) -> int:
        """In MiB, of a device with so much of it; never more than there is."""
        wanted = self.mib if self.mib is not None else int(usable_mib * self.percent / 100)
        return max(0, min(wanted, usable_mib))


@dataclass(frozen=True, slots=True)
class Load:
    """What a workload puts on each of its GPUs at a moment.

    `utilization` is in percent; `spread` is by how many percent points either way it may differ where jitter is asked
    for; `phase` is the phase's name, empty without phases.
    """

    utilization: float = 0.0
    memory: Memory = Memory()
    spread: float = 0.0
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of so many seconds, `inf` for ever; utilisation goes straight from `begins` to `ends` percent."""

    name: str
    seconds: float
    begins: float
    ends: float
    memory: Memory
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Interruption:
    """What comes back within the lasting phase: for the last `seconds` of every `period`.

    Without a memory of its own, that of the phase stays in use.
    """

    name: str
    seconds: float
    period: float
    utilization: float
    spread: float = 0.0
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Phases one after the other, the last of which may last for ever; afterwards the workload idles.

    Ages are in seconds; before its beginning a workload puts nothing on its GPUs.
    """

    phases: tuple[Phase, ...]
    interruption: Interruption | None = None

    def at(self, age: float) -> Load:
        """The load at an age."""
        if age < 0:
            return Load()
        begun = 0.0
        for phase in self.phases:
            passed = age - begun
            if passed < phase.seconds:
                return self._within(phase, passed)
            begun += phase.seconds
        # A process that has done its work keeps its memory.
        return Load(0.0, self.phases[-1].memory, phase="idle")

    def _within(self, phase: Phase, passed: float) -> Load:
        other = self.interruption
        if phase.seconds == math.inf:
            if other is not None and passed % other.period >= other.period - other.seconds:
                return Load(other.utilization, other.memory or phase.memory, other.spread, other.name)
            return Load(phase.begins, phase.memory, phase.spread, phase.name)
        utilization = phase.begins + (phase.ends - phase.begins) * passed / phase.seconds
        return Load(utilization, phase.memory, phase.spread, phase.name)

    def busy_seconds(self, start: float, end: float) -> float:
        """The integral of utilisation, as a fraction of one, from one age to another: exact, not sampled."""
        return self._busy_until(max(0.0, end)) - self._busy_until(max(0.0, start))

    def _busy_until(self, age: float) -> float:
        total = begun = 0.0
        for phase in self.phases:
            passed = min(age - begun, phase.seconds)
            if passed <= 0:
                break
            if phase.seconds == math.inf:
                total += self._lasting(phase, passed)
            else:
                reached = phase.begins + (phase.ends - phase.begins) * passed / phase.seconds
                total += (phase.begins + reached) / 2 * passed
            begun += phase.seconds
        return total / 100

    def _lasting(self, phase: Phase, passed: float) -> float:
        other = self.interruption
        if other is None:
            return phase.begins * passed
        periods, rest = divmod(passed, other.period)
        interrupted = periods * other.seconds + max(0.0, rest - (other.period - other.seconds))
        return phase.begins * (passed - interrupted) + other.utilization * interrupted


def constant(utilization: float, memory: Memory, spread: float = 0.0) -> LoadPlan:
    """A plan that never changes."""
    return LoadPlan((Phase("", math.inf, utilization, utilization, memory, spread),))
