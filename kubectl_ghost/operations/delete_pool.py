"""Taking nodes away: whole pools by collection, a pool's last nodes one by one.

Pods go first. A pod of a deleted node would stay Running for a while, and a node of the same name would get it back.
The nodes go last, since they are the pool: as long as one is left, the same command finds it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, RESOURCE_SLICES, Resource
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.hardware import PoolSettings
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.device_classes import delete_device_classes, ensure_device_classes
from kubectl_ghost.operations.fleet import Pool, pool_selector, pools_of, readable_settings, survey, unknown_pool
from kubectl_ghost.operations.pods import delete_pods, pods_on
from kubectl_ghost.operations.slices import read_slices


def select_pools(
    reader: Reader, names: Collection[str], *, everything: bool, ignore_missing: bool
) -> tuple[list[Pool], list[Pool]]:
    """The pools to delete and those that stay, with their nodes' metadata.

    Raises:
        GhostError: naming the first pool that is not there.
    """
    pools = pools_of(survey(reader).ours)
    for name in names:
        if name not in pools and not ignore_missing:
            raise unknown_pool(name, pools)
    going = [pool for name, pool in pools.items() if everything or name in names]
    return going, [pool for pool in pools.values() if pool not in going]


def delete_pools(writer: Writer, going: list[Pool], staying: list[Pool], warnings: list[str]) -> Iterator[Change]:
    """Delete pools with all that belongs to them; the DeviceClasses too when no DRA pool remains.

    Args:
        warnings: receives a line for what cannot be read, or the server does not allow.
    """
    nodes = {name: node for pool in going for name, node in pool.by_name.items()}
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))
    yield from _device_classes(writer, staying, warnings)
    for pool in going:
        yield from _delete_pool(writer, pool)
    # A DaemonSet may have put a pod back on a node before it went.
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))


def _device_classes(writer: Writer, staying: list[Pool], warnings: list[str]) -> Iterator[Change]:
    remaining: list[PoolSettings] = readable_settings(staying, warnings)
    if not staying:
        yield from delete_device_classes(writer)
    elif len(remaining) == len(staying):
        yield from ensure_device_classes(writer, remaining, warnings)


def _delete_pool(writer: Writer, pool: Pool) -> Iterator[Change]:
    selector = pool_selector(pool.name)
    matched = writer.list(NODES, label_selector=selector, metadata_only=True).items
    if {node["metadata"]["name"] for node in matched} != set(pool.by_name):
        # The label is on a node that is not of this pool, or missing on one that is: then it may select nothing.
        yield from _delete_each(writer, pool.nodes.values())
        return
    # Both at the same time, which is faster for the server than one after the other; the guard sees each object first.
    slices = read_slices(writer, selector=selector, metadata_only=True)
    listed: dict[Resource, list[Json]] = {RESOURCE_SLICES: slices, NODES: matched}
    for _ in run_ordered(lambda kind: writer.delete_collection(kind, selector, listed[kind]), listed):
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
    yield from _delete_each(writer, nodes.values())
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))
