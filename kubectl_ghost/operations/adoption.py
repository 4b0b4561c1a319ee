"""GPUs for simulated nodes that somebody else creates, an autoscaler say: given, kept as declared, and taken back.

Such a node keeps its name and everything that is its owner's; what it had of all that is set on it stands in one of
its annotations from the first write on, so that it can be given back exactly so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from kubectl_ghost.cluster.errors import Conflict, NotFound
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, RESOURCE_SLICES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import is_ours, is_simulated
from kubectl_ghost.domain.hardware import NodeHardware, PoolSettings, SharingKind
from kubectl_ghost.domain.holders import is_finished, pod_name, requested_devices
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.resettling import with_settings
from kubectl_ghost.manifests.adopted_node import adoption_patch, return_patch, withdrawal_patch
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.evicting import evict_until_quiet
from kubectl_ghost.operations.fleet import (
    OURS,
    adopted_of,
    hardware_of,
    pools_of,
    template_selector,
    unknown_pool,
)
from kubectl_ghost.operations.holdings import claims_for, cut_off, find_holders
from kubectl_ghost.operations.pods import delete_pods, pods_on
from kubectl_ghost.operations.reconcile import update_node
from kubectl_ghost.operations.slices import read_slices

_ATTEMPTS = 16


@dataclass(frozen=True, slots=True)
class Template:
    """Which nodes are to be adopted, by a label selector, and the pool whose settings their GPUs get."""

    pool: str
    selector: str


def template_settings(reader: Reader, name: str) -> PoolSettings:
    """The settings of a pool as they are at this moment; one small request where its first node is there.

    Raises:
        GhostError: if there is no such pool, it is being deleted, or its declaration cannot be read.
    """
    first = reader.find(NODES, f"{name}-0")
    pools = pools_of([first] if first is not None else [])
    if name not in pools:
        pools = pools_of(reader.list(NODES, label_selector=OURS, metadata_only=True).items)
    if name not in pools:
        raise unknown_pool(name, pools)
    pool = pools[name]
    if pool.size == 0 or pool.first["metadata"].get("deletionTimestamp"):
        raise GhostError(f'pool "{name}" is being deleted', "Make it again with: kubectl ghost add-pool " + name)
    return pool.settings


def check_template(reader: Reader, template: Template) -> None:
    """Let the server look at the selector, and look for the pool, before anything is written.

    Raises:
        GhostError: if there is no such pool, or the selector is none.
    """
    template_settings(reader, template.pool)
    one = f"metadata.name={template.pool}-0"
    reader.list(NODES, label_selector=template.selector, field_selector=one, metadata_only=True)


def is_adoptable(node: Json) -> bool:
    """Whether a node is simulated and nobody of ours has it, and it has been given its own resources already.

    kwok fills in CPUs, memory and pods where a new node says nothing of capacity at all, and only there: GPUs that came
    first would leave it without them.
    """
    status = node.get("status", {})
    free = is_simulated(node) and not is_ours(node) and not node["metadata"].get("deletionTimestamp")
    return bool(free and status.get("capacity") and status.get("allocatable"))


def adopt_matching(writer: Writer, template: Template, warnings: list[str] | None = None) -> Iterator[Change]:
    """Adopt every node that matches now.

    Args:
        warnings: receives a line for each that would match, but that kwok has not initialised yet.

    Raises:
        GhostError: if there are such nodes, and the pool is not there (any more).
    """
    listed = writer.list(NODES, label_selector=template.selector).items
    found = [node for node in listed if is_adoptable(node)]
    if warnings is not None:
        early = [node for node in listed if is_simulated(node) and not (is_ours(node) or is_adoptable(node))]
        warnings += [_too_early(node) for node in early if not node["metadata"].get("deletionTimestamp")]
    if not found:
        return
    settings = template_settings(writer, template.pool)
    for changes in run_ordered(lambda node: adopt(writer, node, settings), found):
        yield from changes


def _too_early(node: Json) -> str:
    return f'node "{node["metadata"]["name"]}" has no capacity yet and is not adopted: run again when it is Ready'


def adopt(writer: Writer, live: Json, settings: PoolSettings) -> list[Change]:
    """Give one node GPUs: the record and the declaration in one write, then what is derived from them.

    Args:
        live: the node as last read; one that has gone or has been adopted meanwhile is left alone.

    Raises:
        Conflict: if others keep changing it.
    """
    name = live["metadata"]["name"]
    for _ in range(_ATTEMPTS):
        try:
            marked = writer.patch(NODES, live, adoption_patch(NodeHardware(settings, 0, adopted=name), live))
            node, *slices = update_node(writer, marked, lambda declared: declared)
            return [Change(NODES, Verb.ADOPTED, node.body), *slices]
        except NotFound:
            return []
        except Conflict:
            found = writer.find(NODES, name)
            if found is None or not is_adoptable(found):
                return []
            live = found
    raise Conflict(f'node "{name}" is being changed by others all the time')


def followed(
    reader: Reader, adopted: Mapping[str, Json], pools: Mapping[str, PoolSettings], warnings: list[str]
) -> dict[str, PoolSettings]:
    """The settings that each adopted node is to have: its pool's, or its own where those would take GPUs from pods.

    Args:
        adopted: readable nodes by name.
        pools: the settings of the pools that there are; without its pool a node keeps what it has.
        warnings: receives a line for each node that is left behind.
    """
    declared = {name: hardware_of(node) for name, node in adopted.items()}
    wanted = {name: pools.get(hardware.settings.name, hardware.settings) for name, hardware in declared.items()}
    for settings in pools.values():
        changed = {
            name: adopted[name]
            for name, hardware in declared.items()
            if wanted[name] is settings and hardware.settings != settings
        }
        lost = cut_off(reader, changed, settings) if changed else []
        for name in changed:
            if any(pod["spec"]["nodeName"] == name for pod in lost):
                warnings.append(f'node "{name}" keeps its GPUs as they are: pods hold some that would be gone')
            elif settings.sharing and settings.sharing.kind is SharingKind.MPS and declared[name].is_split:
                warnings.append(f'node "{name}" keeps its GPUs as they are: the device plugin has no MPS with MIG')
            else:
                continue
            wanted[name] = declared[name].settings
    return wanted


def repair_adopted(
    writer: Writer,
    adopted: Mapping[str, Json],
    settings: Mapping[str, PoolSettings],
    slices: Mapping[str, list[Json]],
) -> Iterator[Change]:
    """Bring adopted nodes to their declarations under these settings.

    What their owner deletes or somebody gives back at this moment is left alone.
    """

    def repair(name: str) -> list[Change]:
        def change(declared: NodeHardware) -> NodeHardware:
            return with_settings(declared, settings[name])

        try:
            return update_node(writer, adopted[name], change, slices.get(name, []))
        except GhostError:
            live = writer.find(NODES, name)
            if live is not None and name in adopted_of([live]):
                raise
            return []

    for changes in run_ordered(repair, adopted):
        yield from changes


def release(writer: Writer, templates: Collection[str], names: Collection[str] = ()) -> Iterator[Change]:
    """Give nodes back as they were, without the pods that hold their GPUs; done again it goes on where it stopped.

    Args:
        templates: of these pools all adopted nodes.
        names: further adopted nodes, of which the label has been taken off.
    """
    listed = [item for name in templates for item in writer.list(NODES, label_selector=template_selector(name)).items]
    known = {node["metadata"]["name"] for node in listed}
    listed += [node for name in names if name not in known and (node := writer.find(NODES, name)) is not None]
    nodes = adopted_of(listed)
    if not nodes:
        return
    evicted = list(_evict(writer, nodes))
    yield from evicted
    for changes in run_ordered(lambda node: _withdraw(writer, node), nodes.values()):
        yield from changes
    if writer.dry_run is DryRun.NONE:
        # The scheduler may still have placed a pod by the slices as they were.
        yield from evict_until_quiet(lambda: _evict(writer, nodes)) if evicted else _evict(writer, nodes)
    for changes in run_ordered(lambda node: _give_back(writer, node), nodes.values()):
        yield from changes


def _evict(writer: Writer, nodes: Mapping[str, Json]) -> Iterator[Change]:
    """Delete the pods that hold GPUs of these nodes, or count on some that have failed since; others may stay."""
    hardware = {name: found for name, node in nodes.items() if (found := _readable(node)) is not None}
    pods = [pod for pod in pods_on(writer, nodes) if not is_finished(pod)]
    held = find_holders(hardware, claims_for(writer, pods), pods)
    holding = {holder.name for found in held.values() for holder in found}

    def is_in_the_way(pod: Json) -> bool:
        return pod_name(pod) in holding or bool(requested_devices(pod))

    yield from delete_pods(writer, nodes, list(filter(is_in_the_way, pods)))


def _readable(node: Json) -> NodeHardware | None:
    """The declaration; a damaged one keeps nobody from getting their node back."""
    try:
        return hardware_of(node)
    except GhostError:
        return None


def _withdraw(writer: Writer, node: Json) -> list[Change]:
    changes = _delete_slices(writer, node)
    _until_written(writer, node, lambda live: _restore_status(writer, live))
    return changes


def _give_back(writer: Writer, node: Json) -> list[Change]:
    """Status once more, since a `sync` may have repaired it; the marks; then slices that it may have made again."""

    def write(live: Json) -> Json:
        restored = _restore_status(writer, live)
        return writer.patch(NODES, restored, return_patch(_readable(restored), restored))

    given = _until_written(writer, node, write)
    changes = [Change(NODES, Verb.RELEASED, given)] if given is not None else []
    return [*changes, *(_delete_slices(writer, node) if writer.dry_run is DryRun.NONE else ())]


def _restore_status(writer: Writer, live: Json) -> Json:
    patch = withdrawal_patch(_readable(live), live)
    return writer.patch(NODES, live, patch, subresource="status") if patch else live


def _until_written(writer: Writer, node: Json, write: Callable[[Json], Json]) -> Json | None:
    """Write to the node as it is now, again after a conflict; None if it has gone or been given back meanwhile."""
    name = node["metadata"]["name"]
    for _ in range(_ATTEMPTS):
        live = writer.find(NODES, name)
        if live is None or name not in adopted_of([live]):
            return None
        try:
            return write(live)
        except Conflict:
            continue
        except NotFound:
            return None
    raise Conflict(f'node "{name}" is being changed by others all the time')


def _delete_slices(writer: Writer, node: Json) -> list[Change]:
    changes = []
    for item in read_slices(writer, node_name=node["metadata"]["name"]):
        writer.delete(RESOURCE_SLICES, item, node=node)
        changes.append(Change(RESOURCE_SLICES, Verb.DELETED, item))
    return changes
