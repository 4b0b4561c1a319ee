"""Reading all sensors of a node at one moment: for every listed device its labels and the text of its values.

The text of a value depends on few things, and most devices of a fleet are alike, so it is kept; a scrape of thousands
of GPUs is then mostly putting labels and values side by side.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ghost_agent.counters import Counters
from ghost_agent.listed import ListedDevice, ListedGpu, ListedNode
from ghost_agent.options import AgentOptions
from kubectl_ghost.domain.dcgm_fields import Field, MigBehaviour, classic
from kubectl_ghost.domain.telemetry import Readings, Sensors, gpu_readings, memory_readings

XID_FIELD = "DCGM_FI_DEV_XID_ERRORS"
_JITTER_SECONDS = 15.0
"""How long a jittered value stays: a scrape interval."""

Values = tuple[str | None, ...]
"""The text of a device's values in the order of the fields; None where the device has no such series."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A device at a moment. `busy` says whether its GPU works at all."""

    gpu: ListedGpu
    device: ListedDevice
    values: Values
    busy: bool


@dataclass(frozen=True, slots=True)
class _Key:
    """All that a device's values depend on but the counters; memory of zero is that of a device without any."""

    sensors: Sensors
    memory_mib: int
    reserved_mib: int
    used_mib: int
    utilization: float
    mig_mode: bool


class Sampler:
    """Reads devices at moments. Not safe to use from several threads at once, because of the counters."""

    def __init__(self, options: AgentOptions) -> None:
        self._options = options
        self._fields = tuple(field for field in options.fields if field.prom_type != "label")
        self._counters = Counters()
        self._formats = [_format(field) for field in self._fields]
        # A field may be printed under its newer name, or another type; telemetry knows the classic ones.
        known = [classic(field) for field in self._fields]
        self._names = [field.name for field in known]
        self._counters_shown = [
            (position, field.name) for position, field in enumerate(known) if field.prom_type == "counter"
        ]
        self._xid = self._names.index(XID_FIELD) if XID_FIELD in self._names else None
        self._text = lru_cache(maxsize=16384)(self._text_of)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of the series, in the order of a sample's values."""
        return self._fields

    def forget(self, node_name: str) -> None:
        """Let go of the counters of a node that is no longer there."""
        self._counters.forget(node_name)

    def sample(self, node: ListedNode, moment: float) -> Iterator[Sample]:
        """Every listed device of a node.

        Args:
            moment: seconds since 1970.
        """
        for gpu in node.gpus:
            yield from self._gpu(node.name, gpu, moment)

    def _gpu(self, node_name: str, gpu: ListedGpu, moment: float) -> Iterator[Sample]:
        loads = [self._load(device, moment) for device in gpu.devices]
        utilization = min(100.0, sum(load[0] * device.share for load, device in zip(loads, gpu.devices, strict=True)))
        sensors = Sensors(gpu.model, utilization, gpu.effect, gpu.variant)
        counters = self._counters.read(node_name, gpu, sensors, moment, self._options.time_scale)
        for device, (own, used) in zip(gpu.devices, loads, strict=True):
            key = _Key(sensors, device.memory_mib, device.reserved_mib, used, own, gpu.mig_mode)
            values = list(self._text(key))
            for position, name in self._counters_shown:
                if name in counters and values[position] is not None:
                    values[position] = str(int(counters[name]))
            if gpu.effect.xid_only:
                values = [None] * len(values)
            if self._xid is not None:
                values[self._xid] = str(device.xids[-1].code) if device.xids else "0"
            yield Sample(gpu, device, tuple(values), utilization > 0)

    def _load(self, device: ListedDevice, moment: float) -> tuple[float, int]:
        """Utilisation in percent and memory in MiB of all that works on a device; nothing for a device at rest."""
        utilization, spread, used = 0.0, 0.0, 0
        usable = device.memory_mib - device.reserved_mib
        for work in device.work:
            load = work.plan.at((moment - work.since) * self._options.time_scale)
            utilization += load.utilization
            spread += load.spread
            used += load.memory.of(usable)
        if self._options.jitter and utilization:
            amplitude = max(spread, utilization * self._options.jitter / 100)
            utilization += amplitude * self._noise(device.blocks[0].head, moment)
        return min(100.0, max(0.0, utilization)), min(used, usable)

    def _noise(self, name: str, moment: float) -> float:
        """From -1 to 1: the same for the same seed, device and interval."""
        text = f"{self._options.seed}/{name}/{int(moment // _JITTER_SECONDS)}"
        return zlib.crc32(text.encode()) / 0x7FFFFFFF - 1

    def _text_of(self, key: _Key) -> Values:
        whole = gpu_readings(key.sensors)
        memory = (
            memory_readings(key.memory_mib, key.reserved_mib, key.used_mib, key.utilization) if key.memory_mib else {}
        )
        return tuple(
            self._one(position, field, whole, memory, key.mig_mode) for position, field in enumerate(self._fields)
        )

    def _one(self, position: int, field: Field, whole: Readings, memory: Readings, mig_mode: bool) -> str | None:
        if mig_mode and field.mig is MigBehaviour.ABSENT:
            return None
        name = self._names[position]
        value = memory.get(name, whole.get(name))
        return None if value is None else self._formats[position] % value


def _format(field: Field) -> str:
    """Go's %d and %f."""
    return "%f" if field.value_type == "double" else "%d"
