"""The GPU models, read from the packaged catalogue.

Each figure's source stands beside it in data/gpu_models.json; fields listed under `unsourced` there have none.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.keys import Json


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a board puts one GPU: the PCIe root complex's bus and the GPU's own, two hex digits each."""

    root_bus: str
    bus: str


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One row of the catalogue; memory in MiB as NVML reports it."""

    key: str
    nvml_name: str
    gfd_product: str
    family: str
    architecture: str
    compute_capability: str
    memory_mib: int
    addressing_mode: str | None
    cpu_arch: str
    mig_capable: bool
    gpus_per_node: int
    fabric_clique: int | None
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver stack that every simulated node reports: versions as nvidia-smi prints them."""

    version: str
    cuda: str
    brand: str


@cache
def _data() -> Json:
    text = files("kubectl_ghost.data").joinpath("gpu_models.json").read_text(encoding="utf-8")
    data: Json = json.loads(text)
    return data


@cache
def driver() -> Driver:
    """The one driver version of the catalogue."""
    data = _data()
    return Driver(data["driver"]["version"], data["driver"]["cuda"], data["brand"]["value"])


def model_keys() -> list[str]:
    """Every model's key, in the catalogue's order."""
    return list(_data()["models"])


@cache
def model(key: str) -> GpuModel:
    """The model with exactly this catalogue key.

    Raises:
        InputError: if there is none (a node declared by a newer version, say).
    """
    row = _data()["models"].get(key)
    if row is None:
        raise _unknown(key)
    slots = tuple(Slot(*slot) for slot in _data()["boards"][row["board"]]["slots"])
    names = set(GpuModel.__dataclass_fields__) - {"key", "slots"}
    return GpuModel(key=key, slots=slots, **{name: row[name] for name in names})


def find_model(name: str) -> GpuModel:
    """The model a user means: a catalogue key, a short name (`h100`) or NVIDIA's product name, in any case.

    Raises:
        InputError: naming the nearest models, if none is meant.
    """
    wanted = name.strip().lower()
    data = _data()
    if wanted in data["aliases"]:
        return model(data["aliases"][wanted])
    for key, row in data["models"].items():
        if wanted in (key, row["nvml_name"].lower(), row["gfd_product"].lower()):
            return model(key)
    raise _unknown(name)


def _unknown(name: str) -> InputError:
    names = [*_data()["aliases"], *model_keys()]
    wanted = name.lower()
    nearest = [candidate for candidate in names if wanted and candidate.startswith(wanted)]
    nearest += difflib.get_close_matches(wanted, names, n=4, cutoff=0.4)
    offered = ", ".join(dict.fromkeys(nearest[:6])) or ", ".join(names)
    return InputError(f'unknown GPU model "{name}"', f"Did you mean one of: {offered}")
