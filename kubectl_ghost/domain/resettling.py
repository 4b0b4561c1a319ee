"""A node's own changes under other settings of its pool: what can stay as it is, and what cannot."""

from __future__ import annotations

from dataclasses import replace

from kubectl_ghost.domain.hardware import GpuState, MigConfig, NodeHardware, Occupancy, PoolSettings
from kubectl_ghost.domain.identity import gpu_name


def with_settings(hardware: NodeHardware, settings: PoolSettings) -> NodeHardware:
    """The same node with its pool's new settings.

    Changes of GPUs that are no longer there go. With another model or MIG mode the boards are others: layouts, parts
    that are declared busy and faults go with the old ones; whole GPUs that are busy stay busy.
    """
    if not hardware.gpus and not hardware.faults and hardware.mig_config is None:
        return replace(hardware, settings=settings)
    old = hardware.settings
    swapped = old.model != settings.model
    remode = swapped or old.mig is not settings.mig
    states = {}
    for index, state in hardware.gpus:
        if index >= settings.gpus:
            continue
        kept_faults = replace(state, faults=(), last_xid=None) if swapped else state
        states[index] = _remoded(kept_faults) if remode else kept_faults
    kept = replace(hardware, settings=settings, gpus=(), mig_config=None if remode else hardware.mig_config)
    for index, state in states.items():
        kept = kept.with_gpu(index, state)
    if kept.mig_config is not None and hardware.is_split and not kept.is_split:
        from kubectl_ghost.domain.mig_layouts import DISABLED

        return replace(kept, mig_config=MigConfig(DISABLED, "success"))
    return kept


def _remoded(state: GpuState) -> GpuState:
    occupancy = state.occupancy
    whole = Occupancy(occupancy.kind, priority=occupancy.priority) if occupancy and not occupancy.instances else None
    return replace(state, mig=None, occupancy=whole)


def dropped(old: NodeHardware, new: NodeHardware) -> list[str]:
    """What the new declaration of a node has lost of what was done to its GPUs: `node-0/gpu-5 (XID 79, Occupied)`."""
    lost = []
    for index, state in old.gpus:
        after = new.gpu(index)
        words = [fault.name for fault in state.faults if fault not in after.faults]
        if state.occupancy is not None and after.occupancy is None:
            words.append("Occupied")
        if state.mig is not None and after.mig is None:
            words.append("MIG layout")
        if words:
            lost.append(f"{old.node_name}/{gpu_name(index)} ({', '.join(words)})")
    return lost
