"""Declared hardware: what a node is said to have. Everything on the cluster is derived from this.

A node's declaration is its pool's settings, the same on every node of the pool, and apart from them what commands have
changed on this one node: how its GPUs are split, which of them are busy, what is broken. `domain/declaration.py` is
its form as text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubectl_ghost.domain.faults import Fault
    from kubectl_ghost.domain.mig import MigInstance


MOST_GPUS = 128
"""Devices that one ResourceSlice holds (k8s.io/api resource/v1, ResourceSliceMaxDevices): one slice a node."""
FORMAT = 1
"""Of the declaration in a node's annotation; one of another format is not read."""


class Advertise(StrEnum):
    """How a node's GPUs are offered to pods."""

    BOTH = "both"
    DRA = "dra"
    DEVICE_PLUGIN = "device-plugin"

    @property
    def slices(self) -> bool:
        """Whether ResourceSlices are published."""
        return self is not Advertise.DEVICE_PLUGIN

    @property
    def capacity(self) -> bool:
        """Whether `nvidia.com/gpu` stands in the node's capacity."""
        return self is not Advertise.DRA


class MigMode(StrEnum):
    """Who splits a pool's GPUs: the administrator (`mig-split`), or the scheduler among all possible instances."""

    STATIC = "static"
    DYNAMIC = "dynamic"


class MigStrategy(StrEnum):
    """How the device plugin and feature discovery show split GPUs: NVIDIA's own three words."""

    NONE = "none"
    SINGLE = "single"
    MIXED = "mixed"


class SharingKind(StrEnum):
    """How the device plugin lets several pods use one GPU."""

    TIME_SLICING = "time-slicing"
    MPS = "mps"


@dataclass(frozen=True, slots=True)
class Sharing:
    """`replicas` pods a GPU; `renamed` is the device plugin's renameByDefault, to `nvidia.com/gpu.shared`."""

    kind: SharingKind
    replicas: int
    renamed: bool = False


class TaintMode(StrEnum):
    """When nodes carry kwok's NoSchedule taint: where there are nodes that are not simulated, or regardless."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A node taint; `value` is empty where there is none."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What the nodes of a pool share.

    `model` is a catalogue key; `cpu` and `memory` are quantities; `tainted` is the outcome of `taint` when the pool was
    last written; zones and racks are dealt out to the nodes in turn.
    """

    name: str
    model: str
    gpus: int
    advertise: Advertise
    cpu: str
    memory: str
    pods: int
    taint: TaintMode = TaintMode.AUTO
    tainted: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    zones: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    mig: MigMode = MigMode.STATIC
    mig_strategy: MigStrategy = MigStrategy.MIXED
    sharing: Sharing | None = None


class OccupancyKind(StrEnum):
    """What keeps a GPU busy: a device taint and lowered allocatable, or a real pod that holds it."""

    TAINT = "taint"
    PODS = "pods"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A busy GPU. `instances` says which parts of it are taken where the pool's MIG is dynamic; empty: all of it.

    `priority` is that of the pods that hold it.
    """

    kind: OccupancyKind = OccupancyKind.TAINT
    instances: tuple[MigInstance, ...] = ()
    priority: int = 0


@dataclass(frozen=True, slots=True)
class LastXid:
    """The last XID of a GPU whose fault is gone, and when it came (RFC 3339).

    The driver says what happened, never that it is over: DCGM shows the code until it is started anew.
    """

    code: int
    since: str


@dataclass(frozen=True, slots=True)
class GpuState:
    """What commands have done to one GPU.

    `mig` is None while MIG mode is off, else the instances that there are (there may be none). `last_xid` is of the
    faults that are gone again, until the node is rebooted.
    """

    mig: tuple[MigInstance, ...] | None = None
    occupancy: Occupancy | None = None
    faults: tuple[Fault, ...] = ()
    last_xid: LastXid | None = None


NEW_GPU = GpuState()


@dataclass(frozen=True, slots=True)
class MigConfig:
    """What stands in the labels `nvidia.com/mig.config` and `nvidia.com/mig.config.state`."""

    name: str
    state: str


@dataclass(frozen=True, slots=True)
class Reboot:
    """A node that is rebooting: since and until when (RFC 3339)."""

    since: str
    until: str


@dataclass(frozen=True, slots=True)
class NodeHardware:
    """The whole declaration of one node: its pool's settings, and its own place in the pool.

    `pool_size` stands on the pool's first node alone: the number of nodes that the pool is to have, so that a command
    that was interrupted while it made them can be finished.
    """

    settings: PoolSettings
    index: int
    pool_size: int | None = None
    gpus: tuple[tuple[int, GpuState], ...] = ()
    """The GPUs that a command has changed, by index, in order; all others are as new."""
    faults: tuple[Fault, ...] = ()
    """Faults of the node as a whole."""
    mig_config: MigConfig | None = None
    reboot: Reboot | None = None
    rebooted_for: str = ""
    """The request of a remediation tool that was answered last: each is answered once."""
    cordoned: bool = False
    """Whether the node is unschedulable because of a fault alone: it was not when the fault began."""
    conditions: tuple[str, ...] = ()
    """Types of the node conditions that faults have put on this node so far, sorted. They are remembered after the
    fault is cleared: the condition stays then, and says that all is well."""
    adopted: str = ""
    """The name of a node that somebody else created: its GPUs alone are this tool's, and its index means nothing."""

    @property
    def node_name(self) -> str:
        """`<pool>-<index>`: the name of every node that this tool creates; an adopted node keeps its own."""
        return self.adopted or f"{self.settings.name}-{self.index}"

    def gpu(self, index: int) -> GpuState:
        """The state of one GPU."""
        return next((state for key, state in self.gpus if key == index), NEW_GPU)

    @property
    def is_split(self) -> bool:
        """Whether any GPU is in MIG mode by the administrator's hand."""
        return any(state.mig is not None for _, state in self.gpus)

    def with_gpu(self, index: int, state: GpuState) -> NodeHardware:
        """The same node with one GPU in another state."""
        states = {**dict(self.gpus), index: state}
        return replace(self, gpus=tuple(sorted((key, value) for key, value in states.items() if value != NEW_GPU)))

    def all_faults(self) -> list[tuple[int | None, Fault]]:
        """Every fault with the index of its GPU, None for those of the node; the node's first."""
        on_gpus = [(index, fault) for index, state in self.gpus for fault in state.faults]
        return [*((None, fault) for fault in self.faults), *on_gpus]
