"""The devices that dcgm-exporter would list on a node, with all about them but what the time decides: plain values."""

from __future__ import annotations

from dataclasses import dataclass

from ghost_agent.labels import Block
from kubectl_ghost.domain.fault_series import SeriesEffect
from kubectl_ghost.domain.hardware import LastXid
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.phases import LoadPlan


@dataclass(frozen=True, slots=True)
class Work:
    """What a pod does on a device: its plan, and since when (seconds since 1970)."""

    plan: LoadPlan
    since: float


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """A GPU or MIG instance. `blocks` are the labels of its series, one for each container that uses it.

    Attributes:
        share: the part of its GPU's compute slices that it has.
        xids: every XID that is known of, the latest last.
    """

    name: str
    blocks: tuple[Block, ...]
    work: tuple[Work, ...]
    memory_mib: int
    reserved_mib: int
    share: float
    xids: tuple[LastXid, ...]


@dataclass(frozen=True, slots=True)
class ListedGpu:
    """A GPU with the devices that are listed in its place.

    `created` is when its counters began, `peers` are the indices of the node's other GPUs.
    """

    uuid: str
    model: str
    variant: int
    mig_mode: bool
    effect: SeriesEffect
    created: float
    peers: tuple[int, ...]
    devices: tuple[ListedDevice, ...]


@dataclass(frozen=True, slots=True)
class ListedNode:
    """A node's GPUs in their order. `answers` is False where its exporter could not be reached.

    `problems` are sentences about pods whose declared load is not understood, by pod; `unrecorded` are pods of the
    device-plugin path with the devices that are to be written on them.
    """

    name: str
    pool: str
    answers: bool
    gpus: tuple[ListedGpu, ...]
    problems: tuple[tuple[str, str], ...] = ()
    unrecorded: tuple[tuple[Json, tuple[str, ...]], ...] = ()
