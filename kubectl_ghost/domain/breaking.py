"""Breaking and mending: faults put on a node's declaration and taken off it, as pure changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.fault_catalogue import fault_kind
from kubectl_ghost.domain.faults import Fault, accompanying_xid
from kubectl_ghost.domain.hardware import GpuState, LastXid, NodeHardware
from kubectl_ghost.domain.reactions import Reaction


@dataclass(frozen=True, slots=True)
class FaultFilter:
    """Which faults are meant: of these kinds (none named: of any), and with this code where one is named."""

    kinds: tuple[str, ...] = ()
    code: int | None = None

    def matches(self, fault: Fault) -> bool:
        """Whether a fault is meant."""
        return (not self.kinds or fault.kind in self.kinds) and self.code in (None, fault.code)


def with_fault(hardware: NodeHardware, gpus: Iterable[int], fault: Fault) -> NodeHardware:
    """The same node with a fault on these GPUs, or on the node itself where the kind strikes a whole node.

    A fault that is there already goes on: it keeps its beginning, and only its end is that of the new one. Declared
    with other reactors or another effect it begins anew.
    """
    if fault_kind(fault.kind).per_node:
        return replace(hardware, faults=_declared(hardware.faults, fault))
    for index in gpus:
        state = hardware.gpu(index)
        hardware = hardware.with_gpu(index, replace(state, faults=_declared(state.faults, fault)))
    return hardware


def without_faults(hardware: NodeHardware, gpus: Iterable[int], meant: FaultFilter, *, node: bool) -> NodeHardware:
    """The same node without the faults that are meant.

    Args:
        gpus: the GPUs to take them off.
        node: whether to take them off the node itself, too.
    """
    if node:
        hardware = replace(hardware, faults=_left(hardware.faults, meant))
    for index in gpus:
        state = hardware.gpu(index)
        hardware = hardware.with_gpu(index, with_faults_left(hardware, state, _left(state.faults, meant)))
    return hardware


def with_faults_left(hardware: NodeHardware, state: GpuState, left: tuple[Fault, ...]) -> GpuState:
    """A GPU's state with these of its faults alone; the last XID of those that go is remembered."""
    if left == state.faults:
        return state
    board = model(hardware.settings.model)
    gone = [
        LastXid(code, fault.since)
        for fault in state.faults
        if fault not in left and (code := accompanying_xid(fault, board)) is not None
    ]
    last = max((*filter(None, [state.last_xid]), *gone), key=lambda xid: xid.since, default=None)
    return replace(state, faults=left, last_xid=last)


def faults_at(hardware: NodeHardware, index: int | None) -> tuple[Fault, ...]:
    """The faults of one GPU; None: of the node itself."""
    return hardware.faults if index is None else hardware.gpu(index).faults


def found_fault(hardware: NodeHardware, index: int | None, fault: Fault) -> Fault | None:
    """The declared fault of the same kind and code, if there is one."""
    return next((found for found in faults_at(hardware, index) if found.identity == fault.identity), None)


def begins(hardware: NodeHardware, index: int | None, fault: Fault) -> bool:
    """Whether declaring this fault is news: it is not there yet, or others react to it than so far."""
    present = found_fault(hardware, index, fault)
    return present is None or not _same(present, fault)


def struck(hardware: NodeHardware, index: int | None, answer: Reaction) -> tuple[int, ...]:
    """The GPUs that the reaction to a fault hits: its own, or all of the node."""
    if index is None or answer.all_devices:
        return tuple(range(hardware.settings.gpus))
    return (index,)


def _declared(present: tuple[Fault, ...], fault: Fault) -> tuple[Fault, ...]:
    others = [found for found in present if found.identity != fault.identity]
    for found in present:
        if _same(found, fault):
            fault = replace(fault, since=found.since)
    return tuple(sorted([*others, fault]))


def _same(left: Fault, right: Fault) -> bool:
    """Whether two declarations are of one fault, apart from when it is."""
    return replace(left, since="", until="") == replace(right, since="", until="")


def _left(present: tuple[Fault, ...], meant: FaultFilter) -> tuple[Fault, ...]:
    return tuple(fault for fault in present if not meant.matches(fault))
