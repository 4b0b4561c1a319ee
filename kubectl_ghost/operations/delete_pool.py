"""Taking nodes away: whole pools by collection, a pool's last nodes one by one.

Pods go first. A pod of a deleted node would stay Running for a while, and a node of the same name would get it back.
A pool's first node says that the pool is going, and goes last: as long as it is there, the same command or `sync`
finishes the work. Nodes that were adopted with the pool's settings are given back before that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kubectl_ghost.cluster.errors import ApiError, Conflict, NotFound
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, RESOURCE_SLICES, Resource
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.adoption import template_of
from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import PoolSettings
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION, Json
from kubectl_ghost.operations.adoption import release
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.device_classes import delete_device_classes, ensure_device_classes
from kubectl_ghost.operations.fillers import delete_fillers
from kubectl_ghost.operations.fleet import (
    Pool,
    adopted_of,
    groups_of,
    hardware_of,
    pool_selector,
    pools_of,
    readable_settings,
    survey,
    unknown_pool,
    unmarked_warnings,
)
from kubectl_ghost.operations.pods import delete_pods, pods_on
from kubectl_ghost.operations.slices import read_slices

_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Deletion:
    """What is to go: pools, and adopted nodes that are given back. All nodes may be their metadata alone."""

    going: list[Pool]
    staying: list[Pool]
    returning: Mapping[str, Json]
    """Adopted nodes of the pools that go, and of pools that are gone already, by name."""
    kept: Mapping[str, Json]
    """Adopted nodes that stay as they are."""

    def __bool__(self) -> bool:
        return bool(self.going or self.returning)

    @property
    def templates(self) -> list[str]:
        """The pools whose adopted nodes are given back."""
        names = {pool.name for pool in self.going} | set(map(template_of, self.returning.values()))
        return sorted(names - {""})


def deletion(nodes: Iterable[Json], names: Collection[str] | None) -> Deletion:
    """What has to be done to these nodes (ours) so that pools go; all of them for None."""
    listed = list(nodes)
    pools = pools_of(listed)
    going = [pool for name, pool in pools.items() if names is None or name in names]
    adopted = adopted_of(listed)
    returning = {name: node for name, node in adopted.items() if names is None or template_of(node) in names}
    return Deletion(
        going,
        [pool for pool in pools.values() if pool not in going],
        returning,
        {name: node for name, node in adopted.items() if name not in returning},
    )


def select_pools(
    reader: Reader, names: Collection[str], warnings: list[str], *, everything: bool, ignore_missing: bool
) -> Deletion:
    """The pools to delete and those that stay, with their nodes' metadata.

    Args:
        warnings: receives a line for each node that would be left behind.

    Raises:
        GhostError: naming the first pool that is not there.
    """
    found = survey(reader)
    warnings += unmarked_warnings(found)
    groups = groups_of(found.ours)
    for name in names:
        if name not in groups and not ignore_missing:
            raise unknown_pool(name, groups)
    return deletion(found.ours, None if everything else names)


def delete_pools(writer: Writer, what: Deletion, warnings: list[str]) -> Iterator[Change]:
    """Delete pools with all that belongs to them; the DeviceClasses too when no DRA pool remains.

    Args:
        warnings: receives a line for what cannot be read, or the server does not allow.
    """
    nodes = {name: node for pool in what.going for name, node in pool.by_name.items()}
    firsts = [_declare_going(writer, pool, alone=not what.returning) for pool in what.going]
    yield from release(writer, what.templates, what.returning)
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))
    for pool in what.going:
        yield from _delete_all_but_first(writer, pool)
    yield from delete_fillers(writer, {*nodes, *what.returning})
    yield from _device_classes(writer, what, warnings)
    yield from _delete_each(writer, firsts)
    # A DaemonSet may have put a pod back on a node before it went.
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))
    if writer.dry_run is DryRun.NONE:
        # Whoever adopted nodes at that moment had seen the pool before it said that it was going.
        yield from release(writer, what.templates)


def _declare_going(writer: Writer, pool: Pool, *, alone: bool) -> Json:
    """Write on the pool's first node that the pool is to have no nodes, where it can be read; returns that node.

    Args:
        alone: nothing but its nodes is to go, so that a single node's going is one write.
    """
    live = pool.first
    for _ in range(_ATTEMPTS):
        try:
            declared = hardware_of(live)
            if declared.pool_size == 0 or (alone and len(pool.nodes) == 1):
                return live
            text = encode(replace(declared, pool_size=0))
            return writer.patch(NODES, live, {"metadata": {"annotations": {HARDWARE_ANNOTATION: text}}})
        except Conflict:
            live = writer.get(NODES, live["metadata"]["name"])
        except GhostError as error:
            if isinstance(error, ApiError) and not isinstance(error, NotFound):
                raise
            # Unreadable, or gone already: the nodes go all the same, only the intent is not on record.
            return live
    return live


def _device_classes(writer: Writer, what: Deletion, warnings: list[str]) -> Iterator[Change]:
    # To the classes an adopted node is a pool of its own: it may have outlived its pool.
    staying = [*what.staying, *(Pool(template_of(node), {0: node}) for node in what.kept.values())]
    remaining: list[PoolSettings] = readable_settings(staying, warnings)
    if not staying:
        yield from delete_device_classes(writer)
    elif len(remaining) == len(staying):
        yield from ensure_device_classes(writer, remaining, warnings)


def _delete_all_but_first(writer: Writer, pool: Pool) -> Iterator[Change]:
    selector = pool_selector(pool.name)
    first = pool.first["metadata"]["name"]
    matched = writer.list(NODES, label_selector=selector, metadata_only=True).items
    if {node["metadata"]["name"] for node in matched} != set(pool.by_name):
        # The label is on a node that is not of this pool, or missing on one that is: then it may select nothing.
        yield from _delete_each(writer, [node for name, node in pool.by_name.items() if name != first])
        return
    # Both at the same time, which is faster for the server than one after the other; the guard sees each object first.
    others = [node for node in matched if node["metadata"]["name"] != first]
    slices = read_slices(writer, selector=selector, metadata_only=True)
    listed: dict[Resource, list[Json]] = {RESOURCE_SLICES: slices, NODES: others}

    def delete(kind: Resource) -> None:
        writer.delete_collection(kind, selector, listed[kind], spare=first if kind is NODES else None)

    for _ in run_ordered(delete, listed):
        pass
    for kind in (NODES, RESOURCE_SLICES):
        yield from (Change(kind, Verb.DELETED, item) for item in listed[kind])


def _delete_each(writer: Writer, nodes: Iterable[Json]) -> Iterator[Change]:
    def delete(node: Json) -> list[Change]:
        changes = []
        for item in read_slices(writer, node_name=node["metadata"]["name"]):
            writer.delete(RESOURCE_SLICES, item, node=node)
            changes.append(Change(RESOURCE_SLICES, Verb.DELETED, item))
        writer.delete(NODES, node)
        return [Change(NODES, Verb.DELETED, node), *changes]

    for changes in run_ordered(delete, nodes):
        yield from changes


def delete_nodes(writer: Writer, nodes: Mapping[str, Json]) -> Iterator[Change]:
    """Delete single nodes of a pool with their pods and slices, in the order given."""
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))
    yield from delete_fillers(writer, nodes)
    yield from _delete_each(writer, nodes.values())
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))
