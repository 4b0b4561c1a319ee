"""`fault` and `fault clear`: breaking GPUs and nodes, and mending them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.breaking import FaultFilter, begins, struck, with_fault, without_faults
from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.fault_catalogue import XID, explain, fault_kind
from kubectl_ghost.domain.faults import Effect, Fault, Reactor, applies, check_options
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.identity import gpu_name
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.reactions import reaction
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.domain.targets import choose, parse_targets
from kubectl_ghost.domain.wording import counted
from kubectl_ghost.operations.assignments import record_assignments
from kubectl_ghost.operations.change_hardware import change_nodes
from kubectl_ghost.operations.changes import Change
from kubectl_ghost.operations.clock import after, now
from kubectl_ghost.operations.evicting import evict_until_quiet
from kubectl_ghost.operations.fault_effects import (
    Hit,
    Leaving,
    Seen,
    cluster_evicts,
    evict_holders,
    fail_holders,
    look,
)
from kubectl_ghost.operations.fault_events import record_events
from kubectl_ghost.operations.features import require_device_taints
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.selecting import Chosen, select

_DOWN = ("node-down", "node-unreachable")
"""The kinds of fault under which a node is not Ready."""
_LATECOMERS_SECONDS = 0.45
"""How long a fault on an idle GPU is looked after, its last look included where that takes no time."""
_LATECOMERS_PAUSE_SECONDS = 0.14


@dataclass(frozen=True, slots=True)
class FaultRequest:
    """What a user wants to break and how; `seconds` after which it ends by itself, None for never."""

    kind: str
    code: int | None = None
    reactors: tuple[Reactor, ...] = ()
    effect: Effect | None = None
    seconds: float | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """A fault and where it is going to be declared."""

    fault: Fault
    chosen: tuple[Chosen, ...]
    hits: tuple[Hit, ...]

    @property
    def nodes(self) -> dict[str, Json]:
        """The nodes as last read, by name."""
        return {item.name: item.node for item in self.chosen}

    @property
    def summary(self) -> str:
        """On how many it lands: `XID 79 on 3 GPUs of 2 nodes`."""
        nodes = counted(len(self.chosen), "node")
        if fault_kind(self.fault.kind).per_node:
            return f"{self.fault.name} on {nodes}"
        return f"{self.fault.name} on {counted(sum(len(item.gpus) for item in self.chosen), 'GPU')} of {nodes}"

    @property
    def takes_down(self) -> list[str]:
        """The nodes that are not Ready because of it."""
        return [item.name for item in self.chosen] if self.fault.kind in _DOWN else []


def plan_fault(writer: Writer, selection: Selection, request: FaultRequest) -> FaultPlan:
    """Check what can be checked and find what is meant; nothing is written.

    Raises:
        InputError: if the fault cannot be, there or at all, or options contradict each other.
        GhostError: if what is meant is not there, or the server knows no device taints where they are needed.
    """
    check_options(request.reactors, request.effect, request.kind)
    if request.kind == XID and request.code is not None:
        explain(request.code)
    fault = Fault(
        kind=request.kind,
        code=request.code,
        reactors=request.reactors,
        effect=request.effect,
        since=now(),
        until="" if request.seconds is None else after(request.seconds),
    )
    chosen = tuple(_nodes(writer, selection) if fault_kind(fault.kind).per_node else select(writer, selection))
    for key in {item.hardware.settings.model: None for item in chosen}:
        applies(fault, model(key), request.force)
    plan = FaultPlan(fault, chosen, tuple(hit for item in chosen for hit in _hits(item, fault)))
    _require_taints(writer, plan)
    return plan


def _nodes(reader: Reader, selection: Selection) -> list[Chosen]:
    """The nodes that are meant by a fault of whole nodes; so many at random are so many nodes."""
    if any(target.gpus is not None for target in parse_targets(selection.words)):
        raise InputError("this fault is of a whole node, not of a GPU", "Name the node alone.")
    number = selection.number
    if number is None:
        return select(reader, selection)
    everything = not (selection.words or selection.pool or selection.selector)
    found = select(reader, replace(selection, number=None, everything=everything))
    if number > len(found):
        raise InputError(f"{counted(number, 'node')} were asked for at random, and there are {len(found)}")
    drawn = {name for name, _ in choose([(item.name, 0) for item in found], number, selection.seed)}
    return [item for item in found if item.name in drawn]


def _hits(item: Chosen, fault: Fault) -> Iterator[Hit]:
    board = model(item.hardware.settings.model)
    for index in (None,) if fault_kind(fault.kind).per_node else item.gpus:
        answer = reaction(fault, board, "" if index is None else gpu_name(index))
        names = frozenset(gpu_name(found) for found in struck(item.hardware, index, answer))
        yield Hit(item, index, answer, names)


def _require_taints(writer: Writer, plan: FaultPlan) -> None:
    tainted = next((hit for hit in plan.hits if hit.answer.taint and hit.item.hardware.settings.advertise.slices), None)
    if tainted is not None:
        require_device_taints(writer, tainted.item.node)


def inject(writer: Writer, plan: FaultPlan, leaving: Leaving) -> Iterator[Change]:
    """Declare the fault and do what follows from it, yielding what happened.

    First the devices of pods are recorded, and the pods fail whose application the error ends: killed then, the same
    command does it once more. Then the fault is declared, which is what counts; events and evictions follow from the
    declaration, so that the same command finds out what of them is missing.

    Args:
        leaving: receives the pods that go because of it.
    """
    looking = any(hit.answer.exit_code is not None or hit.answer.evicts or hit.answer.unhealthy for hit in plan.hits)
    seen = look(writer, plan.chosen) if looking else None
    if seen is not None:
        for change in record_assignments(writer, plan.nodes, seen.hardware, list(seen.pods.values())):
            seen.replace(change.body)
            yield change
        yield from fail_holders(writer, seen, plan.hits, plan.fault)
    declared: dict[str, NodeHardware] = {}
    yield from _declare(writer, plan, declared)
    yield from record_events(writer, plan.nodes, plan.hits, plan.fault, declared)
    if seen is None or not any(hit.answer.evicts for hit in plan.hits):
        return
    leaving.update(cluster_evicts(seen, plan.hits))
    yield from evict_holders(writer, seen, plan.hits, leaving)
    if writer.dry_run is not DryRun.NONE:
        return

    def again() -> Iterator[Change]:
        return evict_holders(writer, look(writer, plan.chosen, declared), plan.hits, leaving, standing=True)

    if not leaving and _begins(plan, seen):
        yield from _evict_latecomers(again)
    if leaving:
        yield from evict_until_quiet(again)


def _begins(plan: FaultPlan, seen: Seen) -> bool:
    """Whether a fault that evicts is news anywhere."""
    evicting = [hit for hit in plan.hits if hit.answer.evicts]
    return any(begins(seen.hardware[hit.item.name], hit.index, plan.fault) for hit in evicting)


def _evict_latecomers(again: Callable[[], Iterator[Change]]) -> Iterator[Change]:
    """Look briefly for a pod on a GPU that nobody held: the scheduler may still be placing one by the old slices."""
    deadline = time.monotonic() + _LATECOMERS_SECONDS
    while True:
        time.sleep(_LATECOMERS_PAUSE_SECONDS)
        changes = list(again())
        yield from changes
        if changes or time.monotonic() + _LATECOMERS_PAUSE_SECONDS >= deadline:
            return


def _declare(writer: Writer, plan: FaultPlan, declared: dict[str, NodeHardware]) -> Iterator[Change]:
    """Declare the fault, and keep what each node is declared to be then."""

    def change(hardware: NodeHardware, item: Chosen) -> NodeHardware:
        return with_fault(hardware, item.gpus, plan.fault)

    for done in change_nodes(writer, plan.chosen, change):
        if done.resource is NODES:
            declared[done.name] = hardware_of(done.body)
        yield done


@dataclass(frozen=True, slots=True)
class ClearPlan:
    """Which faults go, of which nodes."""

    meant: FaultFilter
    chosen: tuple[Chosen, ...]
    whole: frozenset[str]
    """The nodes that are meant as a whole, their own faults included."""
    number: int

    @property
    def summary(self) -> str:
        """`3 faults of 2 nodes`."""
        return f"{counted(self.number, 'fault')} of {counted(len(self.chosen), 'node')}"

    @property
    def comes_back(self) -> list[str]:
        """The nodes that become Ready again."""
        return [item.name for item in self.chosen if _is_down(item.hardware) and not _is_down(self.cleared(item))]

    def cleared(self, item: Chosen, hardware: NodeHardware | None = None) -> NodeHardware:
        """A node without the faults that are meant; as it is now, where that is given."""
        return without_faults(hardware or item.hardware, item.gpus, self.meant, node=item.name in self.whole)


def plan_clear(reader: Reader, selection: Selection, meant: FaultFilter) -> ClearPlan:
    """Find the faults that are meant; nodes without any are left out.

    Raises:
        InputError: if nothing is named, or a kind or code is unknown.
        GhostError: if what is named is not there.
    """
    for kind in meant.kinds:
        fault_kind(kind)
    if meant.code is not None:
        explain(meant.code)
    found = select(reader, selection)
    parts = {target.node for target in parse_targets(selection.words) if target.gpus is not None}
    everything = ClearPlan(meant, tuple(found), frozenset(item.name for item in found) - parts, 0)
    gone = {item.name: _number(item.hardware) - _number(everything.cleared(item)) for item in found}
    return replace(everything, chosen=tuple(item for item in found if gone[item.name]), number=sum(gone.values()))


def clear(writer: Writer, plan: ClearPlan) -> Iterator[Change]:
    """Take the faults off, and with them everything that they had brought about."""
    return change_nodes(writer, plan.chosen, lambda hardware, item: plan.cleared(item, hardware))


def _number(hardware: NodeHardware) -> int:
    return len(hardware.all_faults())


def _is_down(hardware: NodeHardware) -> bool:
    return hardware.reboot is not None or any(fault.kind in _DOWN for fault in hardware.faults)


def kinds_of(words: Iterable[str]) -> tuple[str, ...]:
    """The kinds that words name, `ecc` standing for all that the command `fault ecc` can declare."""
    return tuple(kind for word in words for kind in (ECC_KINDS.values() if word == "ecc" else (word,)))


ECC_KINDS = {
    "correctable": "ecc-correctable",
    "uncorrectable": "ecc-uncorrectable",
    "row-remap-pending": "row-remap-pending",
    "row-remap-failure": "row-remap-failure",
}
"""The values of `fault ecc --type`."""
