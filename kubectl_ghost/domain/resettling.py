"""A node's own changes under other settings of its pool: what can stay as it is, and what cannot."""

from __future__ import annotations

from dataclasses import replace

from kubectl_ghost.domain.hardware import GpuState, NodeHardware, Occupancy, PoolSettings


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
        kept_faults = replace(state, faults=() if swapped else state.faults)
        states[index] = _remoded(kept_faults) if remode else kept_faults
    kept = replace(hardware, settings=settings, gpus=(), mig_config=None if remode else hardware.mig_config)
    for index, state in states.items():
        kept = kept.with_gpu(index, state)
    return kept


def _remoded(state: GpuState) -> GpuState:
    occupancy = state.occupancy
    whole = Occupancy(occupancy.kind, priority=occupancy.priority) if occupancy and not occupancy.instances else None
    return replace(state, mig=None, occupancy=whole)
