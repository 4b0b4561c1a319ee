"""Reading the declared hardware back from the text that `domain/declaration.py` writes.

The annotation may have been written by hand or by another version, so everything is checked: what a flag would refuse
is refused here, too, naming the node.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.errors import GhostError, InputError
from kubectl_ghost.domain.hardware import (
    FORMAT,
    MOST_GPUS,
    Advertise,
    GpuState,
    LastXid,
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

if TYPE_CHECKING:
    from kubectl_ghost.domain.faults import Fault
    from kubectl_ghost.domain.mig import MigInstance


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
    except (ValueError, KeyError, TypeError, RecursionError, InputError) as error:
        raise GhostError(
            f'the hardware annotation of node "{node_name}" cannot be read: {_reason(error)}',
            f"Restore the annotation {HARDWARE_ANNOTATION} of that node, or delete its pool with: "
            f"kubectl ghost delete-pool {node_name.rpartition('-')[0]}",
        ) from error
    if hardware.node_name != node_name:
        raise GhostError(
            f'the hardware annotation of node "{node_name}" is that of node "{hardware.node_name}"',
            f"Restore the annotation {HARDWARE_ANNOTATION} of node {node_name}.",
        )
    return hardware


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON ({error})"
    return str(error) or type(error).__name__


def _node(declaration: Json) -> NodeHardware:
    size = declaration.get("nodes")
    settings = _settings(json.dumps(_mapping(declaration["pool"])))
    states = _mapping(declaration.get("gpus", {}))
    gpus = {_index(key, settings): _gpu(value, settings) for key, value in states.items()}
    config, reboot = declaration.get("migConfig"), declaration.get("reboot")
    return NodeHardware(
        settings,
        _number(declaration["index"]),
        None if size is None else _number(size),
        gpus=tuple(sorted(gpus.items())),
        faults=_faults(declaration, of_node=True),
        mig_config=None if config is None else MigConfig(*map(_text, config)),
        reboot=None if reboot is None else Reboot(*map(_time, reboot)),
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


def _gpu(value: Any, settings: PoolSettings) -> GpuState:
    state = _mapping(value)
    return GpuState(
        mig=None if "mig" not in state else _instances(state["mig"], settings),
        occupancy=_occupancy(state["occupied"], settings) if "occupied" in state else None,
        faults=_faults(state, of_node=False),
        last_xid=_last_xid(state.get("lastXid")),
    )


def _last_xid(value: Any) -> LastXid | None:
    if value is None:
        return None
    code, since = value
    return LastXid(_number(code), _text(since) and _time(since))


def _occupancy(value: Any, settings: PoolSettings) -> Occupancy:
    occupied = _mapping(value)
    priority = occupied.get("priority", 0)
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise TypeError(f"{priority!r} is no priority")
    return Occupancy(OccupancyKind(occupied["by"]), _instances(occupied.get("instances", ()), settings), priority)


def _faults(value: Json, *, of_node: bool) -> tuple[Fault, ...]:
    if not value.get("faults"):
        return ()
    # Loaded where there are any: most declarations have none.
    from kubectl_ghost.domain.fault_catalogue import fault_kind
    from kubectl_ghost.domain.faults import read_fault

    found = tuple(read_fault(fault) for fault in value["faults"])
    for fault in found:
        if fault_kind(fault.kind).per_node is not of_node:
            raise ValueError(f"{fault.name} is no fault of a {'node' if of_node else 'GPU'}")
    return found


def _instances(values: Any, settings: PoolSettings) -> tuple[MigInstance, ...]:
    """MIG instances as the placement table allows them: what the API server would be told of others is nonsense."""
    if not values:
        return ()
    from kubectl_ghost.domain.mig import MigInstance, mig_table
    from kubectl_ghost.domain.mig_placement import check_layout

    found = tuple(MigInstance(_text(profile), _number(start)) for profile, start in values)
    table = mig_table(settings.model)
    if table is None:
        raise ValueError(f"GPU model {settings.model} has no MIG")
    check_layout(table, found)
    return found


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
        gpus=_gpus(pool["gpus"]),
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
    if _number(replicas) < 2:
        raise ValueError(f"GPUs are shared by two at least, not by {replicas}")
    return Sharing(SharingKind(kind), replicas, renamed is True)


def _gpus(value: Any) -> int:
    if not 1 <= _number(value) <= MOST_GPUS:
        raise ValueError(f"a node has 1 to {MOST_GPUS} GPUs, not {value}")
    gpus: int = value
    return gpus


def _time(value: Any) -> str:
    datetime.fromisoformat(_text(value))
    return str(value)


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
