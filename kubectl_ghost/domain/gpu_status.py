"""What one GPU is doing, in the words that views show: a pure function of the declaration and of who holds what."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kubectl_ghost.domain.consequences import consequences
from kubectl_ghost.domain.hardware import NEW_GPU, MigMode, NodeHardware

if TYPE_CHECKING:
    from kubectl_ghost.domain.faults import Fault

HEALTHY = "Healthy"
OCCUPIED = "Occupied"


def is_usable(hardware: NodeHardware, index: int) -> bool:
    """Whether a new pod could be given this GPU, or a part of it, if nobody held any of it."""
    if not hardware.gpus and not hardware.faults:
        return True
    if hardware.gpu(index).occupancy is not None:
        return False
    found = consequences(hardware)
    tainted = any(taint.effect != "None" for taint in found.taints.get(index, ()))
    return not tainted and index not in found.unavailable


def faults_on(hardware: NodeHardware, index: int) -> list[Fault]:
    """The faults that concern a GPU: its own, and those of its node."""
    if not hardware.gpus and not hardware.faults:
        return []
    return [*hardware.faults, *hardware.gpu(index).faults]


def state_text(hardware: NodeHardware, index: int) -> str:
    """What is the matter with a GPU: its faults, then that it is occupied; `Healthy` if nothing is."""
    if not hardware.gpus and not hardware.faults:
        return HEALTHY
    words = [fault.name for fault in faults_on(hardware, index)]
    if hardware.gpu(index).occupancy is not None:
        words.append(OCCUPIED)
    return ",".join(words) or HEALTHY


def mig_text(hardware: NodeHardware, index: int) -> str:
    """How a GPU is split: `3g.40gb,1g.10gb*2`, `dynamic`, `enabled` without instances, or nothing."""
    if hardware.settings.mig is MigMode.DYNAMIC:
        return "dynamic"
    state = hardware.gpu(index) if hardware.gpus else NEW_GPU
    if state.mig is None:
        return ""
    counts = Counter(instance.profile for instance in state.mig)
    return ",".join(name if count == 1 else f"{name}*{count}" for name, count in counts.items()) or "enabled"
