"""`occupy`: GPUs become busy before any workload exists, by declaration or by pods that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.expiry import without_what_is_over
from kubectl_ghost.domain.hardware import NodeHardware, Occupancy, OccupancyKind
from kubectl_ghost.domain.holders import PodName
from kubectl_ghost.domain.identity import gpu_name, parent_gpu
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.occupancy import (
    Choice,
    Gpu,
    Held,
    choose_at_random,
    choose_free,
    choose_named,
    choose_share,
    look_at,
    occupied,
)
from kubectl_ghost.domain.partial_occupancy import choose_parts
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.manifests.fillers import Filler, fillers
from kubectl_ghost.operations.assignments import record_assignments
from kubectl_ghost.operations.change_hardware import change_nodes
from kubectl_ghost.operations.changes import Change
from kubectl_ghost.operations.clock import now
from kubectl_ghost.operations.evicting import evict_until_quiet
from kubectl_ghost.operations.features import require_device_taints
from kubectl_ghost.operations.fillers import reconcile_fillers
from kubectl_ghost.operations.occupy_evictions import (
    NewParts,
    evict_from,
    give_way,
    held_by_pods,
    in_the_way,
    pods_named,
)
from kubectl_ghost.operations.outcome import hardware_after
from kubectl_ghost.operations.pods import delete_pods, pods_on
from kubectl_ghost.operations.selecting import Chosen, select

DEFAULT_PRIORITY = 0


@dataclass(frozen=True, slots=True)
class OccupyRequest:
    """What the user asked for. Of free, percent and number at most one is given; `selection` has no number.

    Attributes:
        free: how many GPUs of each node stay free.
        percent: how many of a hundred GPUs are to be busy.
        number: so many GPUs, drawn by `seed`.
        profiles: the parts of each GPU that are to be busy; "" for all of it.
        priority: of filler pods; None leaves those alone that there are, and is 0 for others.
    """

    selection: Selection
    kind: OccupancyKind = OccupancyKind.TAINT
    free: tuple[int, ...] | None = None
    percent: int | None = None
    number: int | None = None
    seed: int = 1
    profiles: str = ""
    priority: int | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class OccupyPlan:
    """What is going to be declared, decided before the first write.

    Attributes:
        chosen: the nodes to write, as read.
        busy: what is to keep GPUs busy, by node and index.
        freed: GPUs that are to be free again.
        going: pods that are evicted first.
        pods: the pods on the selected nodes.
        summary: what it comes to: busy GPUs, their nodes, free GPUs.
        new: whether anything is declared that is not yet.
    """

    request: OccupyRequest
    chosen: list[Chosen]
    busy: dict[str, dict[int, Occupancy]]
    freed: dict[str, set[int]]
    going: list[Json]
    pods: list[Json]
    summary: tuple[int, int, int]
    new: bool

    @property
    def nodes(self) -> dict[str, Json]:
        """The nodes to write, by name."""
        return {item.name: item.node for item in self.chosen}

    @property
    def new_parts(self) -> dict[str, dict[int, set[MigInstance]]]:
        """The parts of GPUs that are to be busy and are not yet, by node and index."""
        found: dict[str, dict[int, set[MigInstance]]] = {}
        for item in self.chosen:
            for index, occupancy in self.busy.get(item.name, {}).items():
                present = item.hardware.gpu(index).occupancy
                if new := {*occupancy.instances} - {*(present.instances if present else ())}:
                    found.setdefault(item.name, {})[index] = new
        return found


def plan_occupy(reader: Reader, request: OccupyRequest) -> OccupyPlan:
    """Choose the GPUs and look who stands in the way; nothing is written.

    Raises:
        GhostError: if the choice is impossible, or pods hold GPUs that are to be busy and `force` is not given.
    """
    selected = select(reader, request.selection)
    moment = now()
    selected = [replace(item, hardware=without_what_is_over(item.hardware, moment)) for item in selected]
    nodes = {item.name: item.node for item in selected}
    pods = pods_on(reader, nodes)
    held = held_by_pods(reader, {item.name: item.hardware for item in selected}, pods)
    gpus = [(item.name, look_at(item.hardware, item.gpus, held.get(item.name, {}), item.name)) for item in selected]
    choice = _choose(request, gpus)
    busy, going_names = _wanted(request, selected, choice, held)
    freed: dict[str, set[int]] = {}
    for gpu in choice.freed:
        freed.setdefault(gpu.node, set()).add(gpu.index)
    going = pods_named(pods, going_names)
    if going and not request.force:
        raise in_the_way(going)
    everywhere = request.free is not None or request.percent is not None
    chosen = [item for item in selected if everywhere or item.name in busy]
    return OccupyPlan(
        request,
        chosen,
        busy,
        freed,
        going,
        pods,
        _summary(selected, busy, freed, held, going_names),
        new=any(occupied(item.hardware, busy.get(item.name, {})) != item.hardware for item in chosen),
    )


def _choose(request: OccupyRequest, nodes: list[tuple[str, list[Gpu]]]) -> Choice:
    gpus = [gpu for _, found in nodes for gpu in found]
    if request.free is not None:
        return choose_free(nodes, request.free)
    if request.percent is not None:
        return choose_share(gpus, request.percent, request.seed)
    if request.number is not None:
        return choose_at_random(gpus, request.number, request.seed)
    return choose_named(gpus, Occupancy(request.kind))


def _occupancy(request: OccupyRequest, gpu: Gpu, instances: tuple[MigInstance, ...] = ()) -> Occupancy:
    """What is to keep a GPU busy; without a word of its priority the pods that hold it already keep theirs."""
    priority = request.priority
    if priority is None:
        priority = gpu.occupancy.priority if gpu.occupancy else DEFAULT_PRIORITY
    return Occupancy(request.kind, instances, priority)


def _wanted(
    request: OccupyRequest, selected: list[Chosen], choice: Choice, held: Mapping[str, Held]
) -> tuple[dict[str, dict[int, Occupancy]], frozenset[PodName]]:
    """What is to keep the chosen GPUs busy, by node and index, and the pods that are in the way of it."""
    hardware = {item.name: item.hardware for item in selected}
    busy: dict[str, dict[int, Occupancy]] = {}
    if not request.profiles:
        for gpu in choice.busy:
            busy.setdefault(gpu.node, {})[gpu.index] = _occupancy(request, gpu)
        return busy, choice.in_the_way
    in_the_way: set[PodName] = set()
    for gpu in choice.busy:
        parts = choose_parts(hardware[gpu.node], gpu.index, request.profiles, held.get(gpu.node, {}))
        present = gpu.occupancy.instances if gpu.occupancy else ()
        busy.setdefault(gpu.node, {})[gpu.index] = _occupancy(request, gpu, (*present, *parts.instances))
        in_the_way |= parts.in_the_way
    return busy, frozenset(in_the_way)


def _summary(
    selected: list[Chosen],
    busy: Mapping[str, Mapping[int, Occupancy]],
    freed: Mapping[str, set[int]],
    held: Mapping[str, Held],
    evicted: frozenset[PodName],
) -> tuple[int, int, int]:
    """How many GPUs of the selected nodes will be busy, on how many nodes, and how many free."""
    taken, nodes, free = 0, 0, 0
    for item in selected:
        hardware = occupied(item.hardware, busy.get(item.name, {}), freed.get(item.name, ()))
        gpus = look_at(hardware, range(hardware.settings.gpus), held.get(item.name, {}), item.name)
        number = sum(gpu.occupancy is not None or not gpu.holders <= evicted for gpu in gpus)
        taken, nodes = taken + number, nodes + bool(number)
        free += sum(gpu.occupancy is None and gpu.holders <= evicted and not gpu.broken for gpu in gpus)
    return taken, nodes, free


def apply_occupy(writer: Writer, plan: OccupyPlan) -> Iterator[Change]:
    """Write the plan: evict, declare, make the pods, and evict once more who has come back by what was there before.

    Without force, parts of GPUs that pods have been placed on meanwhile are left to them: a GPU's counters cannot
    be below what is held of it.

    Raises:
        GhostError: if the server drops device taints, or a pod has taken the place of parts that were to be busy.
    """
    _require_taints(writer, plan)
    yield from delete_pods(writer, plan.nodes, plan.going)
    yield from _record(writer, plan)
    nodes = plan.nodes

    def change(hardware: NodeHardware, item: Chosen) -> NodeHardware:
        return occupied(hardware, plan.busy.get(item.name, {}), plan.freed.get(item.name, ()))

    for done in change_nodes(writer, plan.chosen, change):
        if done.resource is NODES:
            nodes[done.name] = done.body
        yield done
    hardware = hardware_after(writer, plan.chosen, nodes, change)
    yield from reconcile_fillers(writer, hardware, nodes, whole=False)
    if writer.dry_run is not DryRun.NONE:
        return
    if plan.request.force:
        yield from evict_until_quiet(lambda: evict_from(writer, nodes, hardware, plan.busy))
    elif new := plan.new_parts:
        yield from give_way(writer, NewParts(plan.chosen, new), nodes, hardware)


def filler_names(plan: OccupyPlan) -> list[str]:
    """The names of the filler pods of all GPUs that a plan keeps busy by pods."""
    return [filler.name for item in plan.chosen for filler in _fillers(plan, item)]


def _fillers(plan: OccupyPlan, item: Chosen) -> list[Filler]:
    busy = plan.busy.get(item.name, {})
    names = {gpu_name(index) for index in busy}
    return [filler for filler in fillers(occupied(item.hardware, busy)) if parent_gpu(filler.device) in names]


def _require_taints(writer: Writer, plan: OccupyPlan) -> None:
    if not plan.new or plan.request.kind is not OccupancyKind.TAINT or plan.request.profiles:
        return
    node = next((item.node for item in plan.chosen if item.hardware.settings.advertise.slices), None)
    if node is not None:
        require_device_taints(writer, node)


def _record(writer: Writer, plan: OccupyPlan) -> Iterator[Change]:
    """Write down who has what on the device plugin's path, before there is less for the next look to deal out."""
    counting = {item.name: item.hardware for item in plan.chosen if item.hardware.settings.advertise.capacity}
    going = {pod["metadata"]["uid"] for pod in plan.going}
    staying = [pod for pod in plan.pods if pod["metadata"]["uid"] not in going]
    yield from record_assignments(writer, plan.nodes, counting, staying)
