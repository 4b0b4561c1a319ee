"""How users say what a GPU is split into: lists of profiles, and the configuration names of NVIDIA's mig-parted."""

from __future__ import annotations

import re

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.mig import MigInstance, MigProfile, MigTable
from kubectl_ghost.domain.mig_placement import place

DISABLED = "all-disabled"
ENABLED = "all-enabled"
BALANCED = "all-balanced"
_BALANCED_COUNTS = {7: {3: 1, 2: 1, 1: 2}, 4: {2: 1, 1: 2}}
"""Compute slices of a GPU -> those of an instance -> instances (NVIDIA/mig-parted, pkg/mig/builder/balanced.go)."""
_ITEM = re.compile(r"([^\s:*]+)\s*(?::\s*([0-9]{1,3})|\*\s*([0-9]{1,3}))?")


def parse_profiles(text: str, table: MigTable) -> tuple[tuple[str, int | None], ...]:
    """Profiles and, where the user gave one, the first memory slice: `3g.40gb:4,2g.20gb,1g.10gb*2`.

    Raises:
        InputError: if it is spelled in another way, or a profile is unknown or wanted more often than it can exist.
    """
    wanted: list[tuple[str, int | None]] = []
    for item in text.split(","):
        match = _ITEM.fullmatch(item.strip())
        if match is None:
            raise InputError(f'invalid MIG profiles "{text}"', _spelling(table))
        name, start, count = match.groups()
        profile = table.profile(name)
        wanted += [(profile.name, None if start is None else int(start))] * _count(profile, count, table)
    return tuple(wanted)


def layout_of(text: str, table: MigTable, gpu: str = "gpu-0") -> tuple[MigInstance, ...]:
    """The instances that a list of profiles means, ordered by start; those with a start keep it.

    Raises:
        InputError: if the list is not understood, or its instances cannot exist together.
    """
    wanted = parse_profiles(text, table)
    fixed = [MigInstance(name, start) for name, start in wanted if start is not None]
    free = [name for name, start in wanted if start is None]
    return _by_start((*fixed, *place(table, free, fixed, gpu)))


def config_names(table: MigTable | None) -> list[str]:
    """The names that `nvidia.com/mig.config` can have on a node with GPUs of this model."""
    if table is None:
        return [DISABLED]
    return [DISABLED, ENABLED, BALANCED, *(f"all-{profile.dotted}" for profile in table.profiles)]


def named_layout(config_name: str, table: MigTable | None) -> tuple[MigInstance, ...] | None:
    """What mig-parted's configuration makes of each GPU of this model, ordered by start; None is MIG switched off.

    Its generated configurations treat all GPUs of a node alike (NVIDIA/mig-parted, pkg/mig/builder/builder.go).

    Raises:
        InputError: listing the names that the model knows.
    """
    if config_name == DISABLED:
        return None
    if table is None:
        raise InputError(f'MIG configuration "{config_name}" needs a GPU with MIG', f"Without MIG, use {DISABLED}.")
    if config_name == ENABLED:
        return ()
    if config_name == BALANCED:
        return _by_start(place(table, _balanced(table)))
    for profile in table.profiles:
        if config_name == f"all-{profile.dotted}":
            return _by_start(place(table, [profile.name] * profile.max_instances))
    raise InputError(
        f'unknown MIG configuration "{config_name}"', f"{table.model} has {', '.join(config_names(table))}."
    )


def _count(profile: MigProfile, text: str | None, table: MigTable) -> int:
    if text is None:
        return 1
    if not 1 <= int(text) <= profile.max_instances:
        raise InputError(
            f'invalid number of instances "{profile.name}*{text}"',
            f"{table.model} has from 1 to {profile.max_instances} of it.",
        )
    return int(text)


def _balanced(table: MigTable) -> list[str]:
    """Of each size the plain profile with the most instances, that is with the least memory."""
    names = []
    for compute_slices, count in _BALANCED_COUNTS[table.compute_slices].items():
        plain = [
            profile
            for profile in table.profiles
            if profile.compute_slices == compute_slices and profile.name.endswith("gb")
        ]
        names += [max(plain, key=lambda profile: profile.max_instances).name] * count
    return names


def _spelling(table: MigTable) -> str:
    *larger, _, smallest = _balanced(table)
    last = table.profile(larger[0]).starts[-1]
    return f"Write {','.join(larger)},{smallest}*2, or {larger[0]}:{last} for one that starts at memory slice {last}."


def _by_start(instances: tuple[MigInstance, ...]) -> tuple[MigInstance, ...]:
    return tuple(sorted(instances, key=lambda instance: instance.start))
