"""The declared hardware as text: one annotation on the node, compact JSON with a format version.

Any later run of the tool, on any machine, derives the same objects from it (`domain/declaration_reading.py`). What is
as new is left out, so that the annotation of a node to which nothing has happened is short.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from kubectl_ghost.domain.hardware import (
    FORMAT,
    GpuState,
    MigMode,
    MigStrategy,
    NodeHardware,
    PoolSettings,
)
from kubectl_ghost.domain.keys import Json

if TYPE_CHECKING:
    from kubectl_ghost.domain.faults import Fault
    from kubectl_ghost.domain.mig import MigInstance


def encode(hardware: NodeHardware) -> str:
    """The annotation's text: the same declaration always gives the same bytes."""
    declaration: Json = {"format": FORMAT, "index": hardware.index, "pool": _pool_value(hardware.settings)}
    if hardware.pool_size is not None:
        declaration["nodes"] = hardware.pool_size
    declaration |= _present(
        {
            "gpus": {str(index): _gpu_value(state) for index, state in hardware.gpus},
            "faults": fault_values(hardware.faults),
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
        value["faults"] = fault_values(state.faults)
    if state.last_xid is not None:
        value["lastXid"] = [state.last_xid.code, state.last_xid.since]
    return value


def _instance_values(instances: tuple[MigInstance, ...]) -> list[list[Any]]:
    return [[instance.profile, instance.start] for instance in instances]


def _present(value: Json) -> Json:
    return {key: part for key, part in value.items() if part not in ({}, [])}


def fault_values(faults: Collection[Fault]) -> list[Json]:
    """Faults as they stand in the annotation."""
    if not faults:
        return []
    # Loaded where there are any: most declarations have none.
    from kubectl_ghost.domain.faults import fault_value

    return [fault_value(fault) for fault in faults]
