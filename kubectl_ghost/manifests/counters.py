"""Dynamic MIG: what a GPU has, and what each instance takes of it, as DRA shared counters.

The counters are NVIDIA's driver's: the engines, the memory, and one counter for each memory slice, which is what makes
instances that overlap exclude each other. A figure that has no source is neither counted nor shown.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from kubectl_ghost.domain.devices import table_of
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.mig import MigInstance, MigTable, maxima
from kubectl_ghost.domain.quantity import mebibytes

_MEMORY = "memory"
_COUNTER_NAMES = {
    "multiprocessors": "multiprocessors",
    "copyEngines": "copy-engines",
    "decoders": "decoders",
    "encoders": "encoders",
    "jpegEngines": "jpeg-engines",
    "ofaEngines": "ofa-engines",
    _MEMORY: _MEMORY,
}
"""Name of a capacity -> name of its counter, as the driver spells the two."""


def counter_set_name(gpu: int) -> str:
    """The driver's name of a GPU's counters."""
    return f"gpu-{gpu}-counter-set"


def counter_set(hardware: NodeHardware, gpu: int) -> Json:
    """What a GPU has to give: all of it, less the parts that are declared busy."""
    model_key = hardware.settings.model
    occupancy = hardware.gpu(gpu).occupancy
    taken = occupancy.instances if occupancy else ()
    return {"name": counter_set_name(gpu), "counters": _remaining(model_key, taken) if taken else _total(model_key)}


@cache
def everything(model_key: str, gpu: int) -> Json:
    """What the whole GPU consumes."""
    return {"counterSet": counter_set_name(gpu), "counters": _total(model_key)}


@cache
def consumed(model_key: str, instance: MigInstance) -> Json:
    """What one instance consumes."""
    return _printed(_amounts(model_key, instance))


@cache
def whole_capacity(model_key: str) -> Json:
    """Capacity of the whole GPU: of each figure the greatest that any instance has."""
    return {name: _quantity(name, amount) for name, amount in maxima(table_of(model_key)).items() if amount is not None}


@cache
def instance_capacity(model_key: str, profile_name: str) -> Json:
    """Capacity of an instance of a profile, as far as it has a source."""
    figures = table_of(model_key).profile(profile_name).capacities
    return {name: _quantity(name, amount) for name, amount in figures.items() if amount is not None}


def _counted(table: MigTable) -> list[str]:
    """The figures that every profile has: only they can be counted."""
    return [name for name, amount in maxima(table).items() if amount is not None]


def _amounts(model_key: str, instance: MigInstance) -> dict[str, int]:
    table = table_of(model_key)
    profile = table.profile(instance.profile)
    figures = profile.capacities
    amounts = {_COUNTER_NAMES[name]: figures[name] or 0 for name in _counted(table)}
    return amounts | {f"memory-slice-{index}": 1 for index in range(instance.start, instance.start + profile.size)}


@cache
def _total(model_key: str) -> Json:
    return _printed(_total_amounts(model_key))


def _total_amounts(model_key: str) -> dict[str, int]:
    table = table_of(model_key)
    amounts = {_COUNTER_NAMES[name]: amount for name, amount in maxima(table).items() if amount is not None}
    return amounts | {f"memory-slice-{index}": 1 for index in range(table.memory_slices)}


@cache
def _remaining(model_key: str, taken: tuple[MigInstance, ...]) -> Json:
    left = Counter(_total_amounts(model_key))
    for instance in taken:
        left.subtract(_amounts(model_key, instance))
    return _printed({name: max(amount, 0) for name, amount in left.items()})


def _printed(amounts: dict[str, int]) -> Json:
    return {name: _quantity(name, amount) for name, amount in amounts.items()}


def _quantity(name: str, amount: int) -> Json:
    return {"value": mebibytes(amount) if name == _MEMORY and amount else str(amount)}


def uncounted(model_key: str) -> list[str]:
    """The figures of a model's instances that have no source and are left out: what to warn of."""
    return [name for name, amount in maxima(table_of(model_key)).items() if amount is None]
