"""`mig-split`: split GPUs into MIG instances, after whoever holds them has been asked about or evicted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.expiry import without_what_is_over
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.holders import GpuKey, Holder, pod_name
from kubectl_ghost.domain.identity import gpu_name, parent_gpu
from kubectl_ghost.domain.keys import FILLER_NAMESPACE, Json
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.domain.splitting import SplitRequest, resplit_gpus, split_as_asked, unsourced_figures
from kubectl_ghost.domain.wording import counted
from kubectl_ghost.operations.assignments import record_assignments
from kubectl_ghost.operations.change_hardware import change_nodes
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.clock import now
from kubectl_ghost.operations.evicting import evict_until_quiet
from kubectl_ghost.operations.fillers import reconcile_fillers
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.holdings import claims_for, find_holders, held_error, lost_holders, node_words
from kubectl_ghost.operations.outcome import hardware_after
from kubectl_ghost.operations.pods import delete_pods, pods_on
from kubectl_ghost.operations.selecting import Chosen, select
from kubectl_ghost.operations.serving import unserved


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """What is going to be written, decided before the first write.

    `old` and `nodes` are of the nodes on which a GPU is split anew, `pods` those on them, `losing` those of them that
    are to go.
    """

    chosen: list[Chosen]
    request: SplitRequest
    force: bool
    nodes: Mapping[str, Json]
    old: Mapping[str, NodeHardware]
    pods: list[Json]
    losing: list[Json]
    warnings: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """On how much it lands: `all-balanced on 16 GPUs of 2 nodes`."""
        what = self.request.profiles or self.request.config or "MIG off"
        gpus, nodes = sum(len(item.gpus) for item in self.chosen), len(self.chosen)
        return f"{what} on {counted(gpus, 'GPU')} of {counted(nodes, 'node')}"


def plan_split(reader: Reader, selection: Selection, request: SplitRequest, *, force: bool = False) -> SplitPlan:
    """Check everything that can be checked and decide what to write; nothing is written.

    Args:
        force: evict the pods that hold the GPUs, and release GPUs that are declared busy.

    Raises:
        GhostError: if nothing can be chosen or split that way, or pods hold what would go, naming them.
    """
    chosen = select(reader, selection)
    moment = now()
    nodes, old, new = {}, {}, {}
    warnings: dict[str, None] = {}
    for item in chosen:
        before = without_what_is_over(item.hardware, moment)
        after = split_as_asked(before, item.gpus, request, force=force)
        warnings |= dict.fromkeys(_figure_warnings(after))
        if resplit_gpus(before, after):
            nodes[item.name], old[item.name], new[item.name] = item.node, before, after
    pods = pods_on(reader, nodes) if nodes else []
    losing = _named(pods, losing_holders(old, new, find_holders(old, claims_for(reader, pods), pods))) if pods else []
    if losing and not force:
        raise held_error(node_words(nodes), losing, "Delete those pods first, or have them evicted with --force.")
    return SplitPlan(chosen, request, force, nodes, old, pods, _of_others(losing), list(warnings))


def apply_split(writer: Writer, plan: SplitPlan) -> Iterator[Change]:
    """Write the plan, yielding what happened to each object.

    Which GPUs pods of the device-plugin path have is written down before these are counted anew. With force, pods are
    evicted before the change, so that a kill in between leaves the old hardware, and those that came back meanwhile
    once more after it: also by a run that finds nothing else left to do. The pods that kept a released GPU busy go by
    what is declared then.
    """
    yield from record_assignments(writer, plan.nodes, plan.old, plan.pods)
    yield from delete_pods(writer, plan.nodes, plan.losing)
    nodes, changed = {}, False
    for change in change_nodes(writer, plan.chosen, partial(_change, plan)):
        if change.resource is NODES:
            nodes[change.name] = change.body
        changed = changed or change.verb is not Verb.UNCHANGED
        yield change
    if plan.force:
        hardware = hardware_after(writer, plan.chosen, nodes, partial(_change, plan))
        yield from reconcile_fillers(writer, hardware, nodes, whole=False)
    if plan.force and writer.dry_run is DryRun.NONE:
        look = partial(_evict_stranded, writer, nodes)
        yield from evict_until_quiet(look) if changed else look()


def _change(plan: SplitPlan, hardware: NodeHardware, item: Chosen) -> NodeHardware:
    return split_as_asked(hardware, item.gpus, plan.request, force=plan.force)


def _figure_warnings(hardware: NodeHardware) -> Iterator[str]:
    for profile, figures in unsourced_figures(hardware).items():
        yield f"no source gives {', '.join(figures)} of {profile} of {hardware.settings.model}: left out"


def losing_holders(
    old: Mapping[str, NodeHardware], new: Mapping[str, NodeHardware], held: Mapping[GpuKey, Iterable[Holder]]
) -> set[Holder]:
    """The holders of GPUs that are split anew, wholly or in part, and of whatever else would not be there any more."""
    losing = lost_holders(old, new, held)
    resplit = {(name, gpu_name(index)) for name in new for index in resplit_gpus(old[name], new[name])}
    for (name, device), found in held.items():
        if (name, parent_gpu(device)) in resplit:
            losing.update(found)
    return losing


def _named(pods: Iterable[Json], holders: Iterable[Holder]) -> list[Json]:
    names = {holder.name for holder in holders}
    return [pod for pod in pods if pod_name(pod) in names]


def _of_others(pods: Iterable[Json]) -> list[Json]:
    """These pods without our own fillers, which come and go by what is declared."""
    return [pod for pod in pods if pod["metadata"]["namespace"] != FILLER_NAMESPACE]


def _evict_stranded(writer: Writer, nodes: Mapping[str, Json]) -> Iterator[Change]:
    """Evict the pods that were placed by the hardware as it was: their devices are not there."""
    hardware = {name: hardware_of(node) for name, node in nodes.items()}
    pods = [pod for pod in pods_on(writer, nodes) if "deletionTimestamp" not in pod["metadata"]]
    held = find_holders(hardware, claims_for(writer, pods), pods)
    stranded = [*_named(pods, lost_holders(hardware, hardware, held)), *unserved(hardware, pods)]
    once = {pod["metadata"]["uid"]: pod for pod in _of_others(stranded)}
    yield from delete_pods(writer, nodes, list(once.values()))
