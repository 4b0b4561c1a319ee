"""MIG: what a GPU model can be split into, and what the instances are called.

The figures stand in data/mig.json with their sources; null there means that no source gives the figure. What can exist
together is `domain/mig_placement.py`.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.identity import gpu_name, name_uuid
from kubectl_ghost.domain.keys import Json

_RESOURCE_PREFIX = "nvidia.com/mig-"
CAPACITIES = {
    "multiprocessors": "multiprocessors",
    "copyEngines": "copy_engines",
    "decoders": "decoders",
    "encoders": "encoders",
    "jpegEngines": "jpeg_engines",
    "ofaEngines": "ofa_engines",
    "memory": "memory_mib",
}
"""NVIDIA's DRA driver's name of each capacity of an instance, in its order, to the field of MigProfile."""


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One kind of instance: how much of the GPU it takes (memory in MiB) and at which memory slices it can start.

    A figure that is None has no source.
    """

    name: str
    gi_profile_id: int
    compute_slices: int
    memory_mib: int | None
    multiprocessors: int | None
    copy_engines: int | None
    decoders: int | None
    encoders: int | None
    jpeg_engines: int | None
    ofa_engines: int | None
    max_instances: int
    starts: tuple[int, ...]
    size: int
    """Memory slices that one instance takes."""

    @property
    def dotted(self) -> str:
        """The name where "+" is not allowed: `1g.10gb.me`."""
        return self.name.replace("+", ".")

    @property
    def resource(self) -> str:
        """Extended resource of the device plugin's mixed strategy, and the prefix of its labels."""
        return _RESOURCE_PREFIX + self.dotted

    @property
    def device_part(self) -> str:
        """The name within a DRA device's; `+me` and `-me` are alike there, and only the profile id tells them apart."""
        return re.sub(r"[^a-z0-9-]", "-", self.name.replace(".", ""))

    @property
    def capacities(self) -> dict[str, int | None]:
        """Amount of each of CAPACITIES that one instance has; memory in MiB."""
        return {capacity: getattr(self, field) for capacity, field in CAPACITIES.items()}


@dataclass(frozen=True, slots=True, order=True)
class MigInstance:
    """An instance at its place: the profile's name and the first memory slice."""

    profile: str
    start: int

    def __str__(self) -> str:
        return f"{self.profile}:{self.start}"


@dataclass(frozen=True, slots=True, eq=False)
class MigTable:
    """What one GPU model can be split into; `model` is its catalogue key.

    There is one object a model, so tables are told apart by identity: hashing all profiles at each look-up would cost
    more than the look-up.
    """

    model: str
    memory_slices: int
    compute_slices: int
    profiles: tuple[MigProfile, ...]

    def profile(self, name: str) -> MigProfile:
        """The profile with this name, in any case; `.me` does for `+me`.

        Raises:
            InputError: naming the nearest, and all profiles of the model.
        """
        for profile in self.profiles:
            if profile.name == name:
                return profile
        wanted = name.strip().lower()
        for profile in self.profiles:
            if wanted in (profile.name, profile.dotted):
                return profile
        raise self._unknown(name)

    def _unknown(self, name: str) -> InputError:
        names = [profile.name for profile in self.profiles]
        nearest = difflib.get_close_matches(name.strip().lower(), names, n=1, cutoff=0.6)
        hint = f"{self.model} has {', '.join(names)}."
        if nearest:
            hint = f"Did you mean {nearest[0]}? {hint}"
        return InputError(f'unknown MIG profile "{name}"', hint)


@cache
def _data() -> Json:
    text = files("kubectl_ghost.data").joinpath("mig.json").read_text(encoding="utf-8")
    data: Json = json.loads(text)
    return data


@cache
def mig_table(model_key: str) -> MigTable | None:
    """The table of the model with this catalogue key; None if it has no MIG."""
    name = _data()["models"].get(model_key)
    if name is None:
        return None
    row = _data()["tables"][name]
    profiles = []
    for profile in row["profiles"]:
        figures = {field: profile[field] for field in MigProfile.__dataclass_fields__ if field != "starts"}
        profiles.append(MigProfile(starts=tuple(profile["starts"]), **figures))
    return MigTable(model_key, row["memory_slices"], row["compute_slices"], tuple(profiles))


def maxima(table: MigTable) -> dict[str, int | None]:
    """What the whole GPU has of each of CAPACITIES (memory in MiB): the most that any profile has.

    None where a profile's figure has no source: such a capacity cannot be counted.
    """
    most: dict[str, int | None] = {}
    for capacity, field in CAPACITIES.items():
        figures = [getattr(profile, field) for profile in table.profiles]
        most[capacity] = None if None in figures else max(figures)
    return most


def device_name(gpu_index: int, profile: MigProfile, start: int) -> str:
    """The name that NVIDIA's DRA driver gives an instance: `gpu-0-mig-1g10gb-19-0`."""
    return f"{gpu_name(gpu_index)}-mig-{profile.device_part}-{profile.gi_profile_id}-{start}"


def mig_uuid(gpu_uuid: str, profile_name: str, start: int) -> str:
    """A UUID in NVML's form: version 5, of `<GPU UUID>-<profile>-<start>`."""
    return f"MIG-{name_uuid(f'{gpu_uuid}-{profile_name}-{start}')}"
