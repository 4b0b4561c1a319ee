"""`add-pool`: create a pool's nodes, or bring those that exist to other settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, RESOURCE_SLICES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import has_our_label
from kubectl_ghost.domain.hardware import NodeHardware, PoolSettings, TaintMode
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.pools import DEFAULT_COUNT, PoolRequest, check_pool, configure
from kubectl_ghost.operations.changes import Change
from kubectl_ghost.operations.device_classes import ensure_device_classes, refuse_clash, require_dra
from kubectl_ghost.operations.fleet import (
    Pool,
    Survey,
    hardware_of,
    pool_selector,
    pools_of,
    refuse_mixed,
    survey,
    unknown_pool,
)
from kubectl_ghost.operations.holdings import cut_off
from kubectl_ghost.operations.pods import delete_pods
from kubectl_ghost.operations.reconcile import create_node, refuse_foreign, update_node


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """What is going to be written, decided before the first write."""

    settings: PoolSettings
    size: int
    existing: Mapping[int, Json]
    slices: Mapping[str, list[Json]]
    pools: list[PoolSettings]
    evict: Mapping[str, Json]
    first_of_cluster: bool
    warnings: list[str] = field(default_factory=list)


def plan_pool(
    reader: Reader,
    name: str,
    count: int | None,
    request: PoolRequest,
    *,
    allow_mixed: bool = False,
    force: bool = False,
    must_exist: bool = False,
) -> PoolPlan:
    """Check everything that can be checked and decide what to write; nothing is written.

    Args:
        count: number of nodes; None keeps what there is (four in a new pool). Fewer than there are removes none.
        request: the flags given; what they leave open stays as it is in an existing pool.
        allow_mixed: go on in a cluster with real GPU nodes, or with many real nodes.
        force: cut pods off GPUs that go away; they are evicted.
        must_exist: refuse to create a pool (scaling).

    Raises:
        GhostError: with one line on what is wrong.
    """
    check_pool(name, count or DEFAULT_COUNT)
    configure(name, None, request)
    found = survey(reader)
    pools = pools_of(found.ours)
    pool = pools.get(name)
    if pool is None and must_exist:
        raise unknown_pool(name, pools)
    settings = configure(name, pool.settings if pool else None, request)
    if not allow_mixed:
        refuse_mixed(reader, found)
    settings = replace(settings, tainted=_tainted(settings.taint, found))
    require_dra(reader, settings)
    others = [other.settings for other in pools.values() if other.name != name]
    refuse_clash(others, settings)
    size = max(count or 0, max(pool.nodes) + 1) if pool else count or DEFAULT_COUNT
    check_pool(name, size)
    _refuse_taken_names(found, name, size)
    existing, slices = _read_pool(reader, name) if pool else ({}, {})
    return PoolPlan(
        settings=settings,
        size=size,
        existing=existing,
        slices=slices,
        pools=[*others, settings],
        evict=_evictions(reader, existing, settings, force=force),
        first_of_cluster=not found.ours,
        warnings=_warnings(pool, count),
    )


def apply_pool(writer: Writer, plan: PoolPlan) -> Iterator[Change]:
    """Write the plan, yielding what happened to each object in a fixed order.

    The node of the lowest index comes first and alone: it carries the pool's settings if this is interrupted.
    """
    yield from ensure_device_classes(writer, plan.pools, plan.warnings)
    indices = iter(range(plan.size))

    def write(index: int) -> list[Change]:
        live = plan.existing.get(index)
        if live is None:
            return create_node(writer, NodeHardware(plan.settings, index))
        slices = plan.slices.get(live["metadata"]["name"], [])
        return update_node(writer, live, lambda declared: declared.with_settings(plan.settings), slices)

    yield from write(next(indices))
    for changes in run_ordered(write, indices):
        yield from changes
    if plan.evict:
        nodes = {node["metadata"]["name"]: node for node in plan.existing.values()}
        yield from delete_pods(writer, nodes, list(plan.evict.values()))


def _tainted(mode: TaintMode, found: Survey) -> bool:
    return mode is TaintMode.ALWAYS or (mode is TaintMode.AUTO and bool(found.real))


def _refuse_taken_names(found: Survey, name: str, size: int) -> None:
    taken = found.names
    for index in range(size):
        node = taken.get(f"{name}-{index}")
        if node is not None:
            refuse_foreign(node)


def _read_pool(reader: Reader, name: str) -> tuple[dict[int, Json], dict[str, list[Json]]]:
    nodes = reader.list(NODES, label_selector=pool_selector(name)).items
    pools = pools_of(nodes)
    slices: dict[str, list[Json]] = defaultdict(list)
    if reader.served(RESOURCE_SLICES):
        for item in reader.list(RESOURCE_SLICES, label_selector=pool_selector(name)).items:
            if has_our_label(item):
                slices[item["spec"].get("nodeName", "")].append(item)
    return (pools[name].nodes if name in pools else {}), slices


def _evictions(
    reader: Reader, existing: Mapping[int, Json], settings: PoolSettings, *, force: bool
) -> Mapping[str, Json]:
    nodes = {node["metadata"]["name"]: node for node in existing.values()}
    lost = cut_off(reader, nodes, {name: hardware_of(node) for name, node in nodes.items()}, settings)
    if lost and not force:
        some = ", ".join(list(lost)[:3]) + (" ..." if len(lost) > 3 else "")
        raise GhostError(
            f'pool "{settings.name}": {len(lost)} pod(s) hold GPUs that would be gone: {some}',
            "Delete those pods first, or pass --force to have them evicted.",
        )
    return lost


def _warnings(pool: Pool | None, count: int | None) -> list[str]:
    if pool is None or count is None or count >= len(pool.nodes):
        return []
    return [
        f'pool "{pool.name}" keeps its {len(pool.nodes)} nodes: add-pool never shrinks a pool; '
        f"use: kubectl ghost scale-pool {pool.name} {count}"
    ]
