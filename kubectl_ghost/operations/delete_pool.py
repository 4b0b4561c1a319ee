"""Taking nodes away: whole pools by collection, a pool's last nodes one by one.

Pods go first. A pod of a deleted node would stay Running for a while, and a node of the same name would get it back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, RESOURCE_SLICES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.guard import has_our_label
from kubectl_ghost.domain.hardware import PoolSettings
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.device_classes import ensure_device_classes
from kubectl_ghost.operations.fleet import Pool, pool_selector, pools_of, survey, unknown_pool
from kubectl_ghost.operations.pods import delete_pods, pods_on


def select_pools(
    reader: Reader, names: Collection[str], *, everything: bool, ignore_missing: bool
) -> tuple[list[Pool], list[PoolSettings]]:
    """The pools to delete, with their nodes' metadata, and the settings of those that stay.

    Raises:
        GhostError: naming the first pool that is not there.
    """
    pools = pools_of(survey(reader).ours)
    for name in names:
        if name not in pools and not ignore_missing:
            raise unknown_pool(name, pools)
    going = [pool for name, pool in pools.items() if everything or name in names]
    return going, [pool.settings for pool in pools.values() if pool not in going]


def delete_pools(
    writer: Writer, pools: list[Pool], remaining: list[PoolSettings], warnings: list[str]
) -> Iterator[Change]:
    """Delete pools with all that belongs to them; the DeviceClasses too when no DRA pool remains.

    Args:
        pools: the pools to delete, their nodes as last read.
        remaining: settings of the pools that stay.
        warnings: receives a line for what the server does not allow.
    """
    nodes = {node["metadata"]["name"]: node for pool in pools for node in pool.nodes.values()}
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))
    for pool in pools:
        yield from _delete_collections(writer, pool)
    # A DaemonSet may have put a pod back on a node before it went.
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))
    yield from ensure_device_classes(writer, remaining, warnings)


def _delete_collections(writer: Writer, pool: Pool) -> Iterator[Change]:
    selector = pool_selector(pool.name)
    slices = _slices(writer, pool.name)
    listed = {NODES: list(pool.nodes.values()), RESOURCE_SLICES: slices}
    deletions = [resource for resource in (RESOURCE_SLICES, NODES) if listed[resource]]
    for _ in run_ordered(lambda resource: writer.delete_collection(resource, selector, listed[resource]), deletions):
        pass
    for resource in (NODES, RESOURCE_SLICES):
        yield from (Change(resource, Verb.DELETED, item) for item in listed[resource])


def _slices(reader: Reader, pool: str) -> list[Json]:
    if not reader.served(RESOURCE_SLICES):
        return []
    found = reader.list(RESOURCE_SLICES, label_selector=pool_selector(pool), metadata_only=True).items
    return [item for item in found if has_our_label(item)]


def delete_nodes(writer: Writer, nodes: Mapping[str, Json]) -> Iterator[Change]:
    """Delete single nodes of a pool with their pods and slices, in the order given."""
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))

    def delete(node: Json) -> list[Change]:
        name = node["metadata"]["name"]
        changes = []
        if writer.served(RESOURCE_SLICES):
            for item in writer.list(RESOURCE_SLICES, field_selector=f"spec.nodeName={name}").items:
                if has_our_label(item):
                    writer.delete(RESOURCE_SLICES, item, node=node)
                    changes.append(Change(RESOURCE_SLICES, Verb.DELETED, item))
        writer.delete(NODES, node)
        return [Change(NODES, Verb.DELETED, node), *changes]

    for changes in run_ordered(delete, nodes.values()):
        yield from changes
    yield from delete_pods(writer, nodes, pods_on(writer, nodes))
