"""The declared hardware as text: one annotation on the node, compact JSON with a format version.

Any later run of the tool, on any machine, derives the same objects from it. What is as new is left out, so that the
annotation of a node to which nothing has happened is short.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.faults import Fault, fault_value, read_fault
from kubectl_ghost.domain.hardware import (
    Advertise,
    GpuState,
    MigConfig,
    MigMode,
    MigStrategy,
    NodeHardware,
    Occupancy,
    OccupancyKind,
    PoolSettings,
    Reboot,
    Sharing,
    SharingKind,
    Taint,
    TaintMode,
)
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION, Json
from kubectl_ghost.domain.mig import MigInstance

FORMAT = 1


def encode(hardware: NodeHardware) -> str:
    """The annotation's text: the same declaration always gives the same bytes."""
    declaration: Json = {"format": FORMAT, "index": hardware.index, "pool": _pool_value(hardware.settings)}
    if hardware.pool_size is not None:
        declaration["nodes"] = hardware.pool_size
    declaration |= _present(
        {
            "gpus": {str(index): _gpu_value(state) for index, state in hardware.gpus},
            "faults": [fault_value(fault) for fault in hardware.faults],
            "migConfig": [hardware.mig_config.name, hardware.mig_config.state] if hardware.mig_config else [],
            "reboot": [hardware.reboot.since, hardware.reboot.until] if hardware.reboot else [],
            "rebootedFor": hardware.rebooted_for or [],
            "cordoned": hardware.cordoned or [],
            "conditions": list(hardware.conditions),
            "adopted": hardware.adopted or [],
        }
    )
    return json.dumps(declaration, separators=(",", ":"), sort_keys=True)


def _pool_value(settings: PoolSettings) -> Json:
    pool = {
        "name": settings.name,
        "model": settings.model,
        "gpus": settings.gpus,
        "advertise": settings.advertise.value,
        "cpu": settings.cpu,
        "memory": settings.memory,
        "pods": settings.pods,
        "taint": settings.taint.value,
        "tainted": settings.tainted,
        "labels": dict(settings.labels),
        "taints": [[taint.key, taint.value, taint.effect] for taint in settings.taints],
        "zones": list(settings.zones),
        "racks": list(settings.racks),
        "mig": settings.mig.value if settings.mig is not MigMode.STATIC else [],
        "migStrategy": settings.mig_strategy.value if settings.mig_strategy is not MigStrategy.MIXED else [],
    }
    if settings.sharing is not None:
        pool["sharing"] = [settings.sharing.kind.value, settings.sharing.replicas, settings.sharing.renamed]
    return _present(pool)


def _gpu_value(state: GpuState) -> Json:
    value: Json = {}
    if state.mig is not None:
        value["mig"] = _instance_values(state.mig)
    if state.occupancy is not None:
        value["occupied"] = _present(
            {
                "by": state.occupancy.kind.value,
                "instances": _instance_values(state.occupancy.instances),
                "priority": state.occupancy.priority or [],
            }
        )
    if state.faults:
        value["faults"] = [fault_value(fault) for fault in state.faults]
    return value


def _instance_values(instances: tuple[MigInstance, ...]) -> list[list[Any]]:
    return [[instance.profile, instance.start] for instance in instances]


def _present(value: Json) -> Json:
    return {key: part for key, part in value.items() if part not in ({}, [])}


def decode(text: str, node_name: str) -> NodeHardware:
    """The declaration that `encode` wrote.

    Raises:
        GhostError: naming the node, if the annotation is damaged, belongs to another node, or is of a format or names
            a GPU model that this version does not know.
    """
    try:
        declaration = _mapping(json.loads(text))
        if declaration["format"] != FORMAT:
            raise GhostError(
                f'node "{node_name}" is declared in format {declaration["format"]}, this version knows {FORMAT}',
                "Use the version of kubectl-ghost that wrote it, or a newer one.",
            )
        hardware = _node(declaration)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise GhostError(
            f'the hardware annotation of node "{node_name}" cannot be read: {error!r}',
            f"Restore the annotation {HARDWARE_ANNOTATION} of that node, or delete its pool with: "
            f"kubectl ghost delete-pool {node_name.rpartition('-')[0]}",
        ) from error
    if hardware.node_name != node_name:
        raise GhostError(
            f'the hardware annotation of node "{node_name}" is that of node "{hardware.node_name}"',
            f"Restore the annotation {HARDWARE_ANNOTATION} of node {node_name}.",
        )
    return hardware


def _node(declaration: Json) -> NodeHardware:
    size = declaration.get("nodes")
    settings = _settings(json.dumps(_mapping(declaration["pool"])))
    gpus = {_index(key, settings): _gpu(value) for key, value in _mapping(declaration.get("gpus", {})).items()}
    config, reboot = declaration.get("migConfig"), declaration.get("reboot")
    return NodeHardware(
        settings,
        _number(declaration["index"]),
        None if size is None else _number(size),
        gpus=tuple(sorted(gpus.items())),
        faults=_faults(declaration),
        mig_config=None if config is None else MigConfig(*map(_text, config)),
        reboot=None if reboot is None else Reboot(*map(_text, reboot)),
        rebooted_for=_text(declaration.get("rebootedFor", "")),
        cordoned=declaration.get("cordoned") is True,
        conditions=tuple(map(_text, declaration.get("conditions", ()))),
        adopted=_text(declaration.get("adopted", "")),
    )


def _index(key: str, settings: PoolSettings) -> int:
    index = int(key)
    if not 0 <= index < settings.gpus or key != str(index):
        raise ValueError(f"there is no GPU {key}")
    return index


def _gpu(value: Any) -> GpuState:
    state = _mapping(value)
    return GpuState(
        mig=None if "mig" not in state else _instances(state["mig"]),
        occupancy=_occupancy(state["occupied"]) if "occupied" in state else None,
        faults=_faults(state),
    )


def _occupancy(value: Any) -> Occupancy:
    occupied = _mapping(value)
    priority = occupied.get("priority", 0)
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise TypeError(f"{priority!r} is no priority")
    return Occupancy(OccupancyKind(occupied["by"]), _instances(occupied.get("instances", ())), priority)


def _faults(value: Json) -> tuple[Fault, ...]:
    return tuple(read_fault(fault) for fault in value.get("faults", ()))


def _instances(values: Any) -> tuple[MigInstance, ...]:
    return tuple(MigInstance(_text(profile), _number(start)) for profile, start in values)


@lru_cache(maxsize=256)
def _settings(text: str) -> PoolSettings:
    """A pool's settings from their JSON; kept, since all nodes of a pool carry the same."""
    pool = json.loads(text)
    key = _text(pool["model"])
    if key not in model_keys():
        raise ValueError(f"GPU model {key} is not in this version's catalogue")
    return PoolSettings(
        name=_text(pool["name"]),
        model=key,
        gpus=_number(pool["gpus"]),
        advertise=Advertise(pool["advertise"]),
        cpu=_text(pool["cpu"]),
        memory=_text(pool["memory"]),
        pods=_number(pool["pods"]),
        taint=TaintMode(pool["taint"]),
        tainted=pool["tainted"] is True,
        labels=tuple(sorted((key, _text(value)) for key, value in _mapping(pool.get("labels", {})).items())),
        taints=tuple(Taint(_text(key), _text(effect), _text(value)) for key, value, effect in pool.get("taints", ())),
        zones=tuple(map(_text, pool.get("zones", ()))),
        racks=tuple(map(_text, pool.get("racks", ()))),
        mig=MigMode(pool.get("mig", MigMode.STATIC)),
        mig_strategy=MigStrategy(pool.get("migStrategy", MigStrategy.MIXED)),
        sharing=_sharing(pool.get("sharing")),
    )


def _sharing(value: Any) -> Sharing | None:
    if value is None:
        return None
    kind, replicas, renamed = value
    return Sharing(SharingKind(kind), _number(replicas), renamed is True)


def _mapping(value: Any) -> Json:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no mapping")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is no number of things")
    return value
