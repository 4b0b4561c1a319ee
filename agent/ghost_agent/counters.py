"""Counters that grow with the work that is done: how far they have come, for each GPU.

They are integrals over time of what telemetry says they rise by in a second. At first sight of a GPU they are what its
age and that of its pods come to; from then on each look adds the time since the look before. So they never fall while
the agent lives: a GPU that is lost, or whose node is down, goes on where it was.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from dataclasses import replace as replaced

from ghost_agent.listed import ListedGpu
from kubectl_ghost.domain.fault_series import FieldValues
from kubectl_ghost.domain.telemetry import Readings, Sensors, rates


@dataclass(slots=True)
class _Meter:
    moment: float
    rates: Readings
    values: dict[str, float] = field(default_factory=dict)
    struck: dict[str, float] = field(default_factory=dict)
    """What the faults of now have raised counters by."""

    def strike(self, counts: FieldValues) -> None:
        """Count what faults have done that were not there at the last look; those that are gone have happened."""
        for name, value in counts:
            self.values[name] = self.values.get(name, 0.0) + max(0.0, value - self.struck.get(name, 0.0))
        self.struck = dict(counts)


class Counters:
    """The meters of all GPUs, by node and UUID. Not safe to use from several threads at once."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, _Meter]] = defaultdict(dict)

    def read(
        self, node_name: str, gpu: ListedGpu, sensors: Sensors, moment: float, time_scale: float
    ) -> dict[str, float]:
        """The counters of a GPU at a moment, by field. The result is the meter's own: do not change it.

        Args:
            moment: seconds since 1970; one before the last look is taken for the last look.
            time_scale: of the pods' ages, at first sight of the GPU.
        """
        current = rates(sensors)
        meters = self._nodes[node_name]
        meter = meters.get(gpu.uuid)
        if meter is None:
            meter = meters[gpu.uuid] = _Meter(moment, current, _so_far(gpu, sensors, moment, time_scale))
            meter.strike(gpu.effect.counts)
            return meter.values
        passed = max(0.0, moment - meter.moment)
        for name, rate in current.items():
            # The trapezoid between two looks: a ramp comes out exactly.
            risen = passed * (rate + meter.rates.get(name, 0.0)) / 2
            meter.values[name] = meter.values.get(name, 0.0) + risen
        meter.moment, meter.rates = max(moment, meter.moment), current
        meter.strike(gpu.effect.counts)
        return meter.values

    def forget(self, node_name: str) -> None:
        """Let go of a node that is no longer there."""
        self._nodes.pop(node_name, None)


def _so_far(gpu: ListedGpu, sensors: Sensors, moment: float, time_scale: float) -> dict[str, float]:
    """What a GPU's counters have come to by now: idle since the node was made, and the work of its present pods.

    What a fault makes rise begins at zero.
    """
    idle = rates(replaced(sensors, utilization=0.0))
    full = rates(replaced(sensors, utilization=100.0))
    faulty = {name for name, _ in sensors.effect.rates}
    busy = sum(
        device.share * work.plan.busy_seconds(0.0, max(0.0, moment - work.since) * time_scale) / time_scale
        for device in gpu.devices
        for work in device.work
        if work.since
    )
    age = max(0.0, moment - gpu.created)
    return {
        name: 0.0 if name in faulty else idle.get(name, 0.0) * age + (rate - idle.get(name, 0.0)) * busy
        for name, rate in full.items()
    }
