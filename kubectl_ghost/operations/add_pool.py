"""`add-pool`: create a pool's nodes, or bring those that exist to other settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.consequences import is_filled
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import is_filler
from kubectl_ghost.domain.hardware import MigMode, NodeHardware, PoolSettings, SharingKind, TaintMode
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.pools import DEFAULT_COUNT, PoolRequest, check_pool, configure
from kubectl_ghost.domain.resettling import dropped, with_settings
from kubectl_ghost.domain.wording import counted
from kubectl_ghost.manifests.counters import uncounted
from kubectl_ghost.manifests.node import node as node_manifest
from kubectl_ghost.operations.change_hardware import end_what_is_over
from kubectl_ghost.operations.changes import Change
from kubectl_ghost.operations.device_classes import ensure_device_classes, refuse_clash, require_dra
from kubectl_ghost.operations.evicting import evict_until_quiet
from kubectl_ghost.operations.features import require_counters
from kubectl_ghost.operations.fillers import reconcile_fillers
from kubectl_ghost.operations.fleet import (
    OURS,
    Pool,
    Survey,
    hardware_of,
    pool_selector,
    pools_of,
    readable_settings,
    refuse_mixed,
    refuse_terminating,
    survey,
    unknown_pool,
    unmarked_warnings,
)
from kubectl_ghost.operations.holdings import cut_off, held_error, refuse_cut_off
from kubectl_ghost.operations.pods import delete_pods, pods_on
from kubectl_ghost.operations.reconcile import bring_node, refuse_foreign
from kubectl_ghost.operations.serving import unserved
from kubectl_ghost.operations.slices import slices_by_node

_MANY_DYNAMIC_NODES = 20


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """What is going to be written, decided before the first write."""

    settings: PoolSettings
    size: int
    existing: Mapping[int, Json]
    slices: Mapping[str, list[Json]]
    pools: list[PoolSettings]
    pools_unread: bool
    force: bool
    first_of_cluster: bool
    warnings: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> dict[str, Json]:
        """The nodes that exist, by name."""
        return {node["metadata"]["name"]: node for node in self.existing.values()}


def plan_pool(
    reader: Reader,
    name: str,
    count: int | None,
    request: PoolRequest,
    *,
    allow_mixed: bool = False,
    force: bool = False,
    exactly: bool = False,
) -> PoolPlan:
    """Check everything that can be checked and decide what to write; nothing is written.

    Args:
        count: number of nodes; None for what the pool is declared to have (four in a new one).
        request: the flags given; what they leave open stays as it is in an existing pool.
        allow_mixed: go on in a cluster with real GPU nodes, or with many real nodes.
        force: cut pods off GPUs that go away; they are evicted.
        exactly: for scaling: the pool must exist, and `count` may be less than it has.

    Raises:
        GhostError: with one line on what is wrong.
    """
    check_pool(name, count or DEFAULT_COUNT)
    configure(name, None, request)
    found = survey(reader)
    pools = pools_of(found.ours)
    pool = pools.get(name)
    if pool is None and exactly:
        raise unknown_pool(name, pools)
    settings = configure(name, pool.settings if pool else None, request)
    if not allow_mixed:
        refuse_mixed(reader, found)
    settings = replace(settings, tainted=_tainted(settings.taint, found))
    require_dra(reader, settings)
    warnings = unmarked_warnings(found)
    others = readable_settings((other for other in pools.values() if other.name != name), warnings)
    if pool is None or pool.settings.advertise is not settings.advertise:
        refuse_clash(others, settings)
    size = _size(pool, count, exactly=exactly)
    check_pool(name, size)
    _refuse_taken_names(found, pool, name, size)
    nodes = _read_nodes(reader, pool) if pool else {}
    _check_nodes(reader, nodes.values(), settings, force=force)
    if pool and not exactly:
        warnings += _size_warnings(pool, count, size)
    warnings += _dropped_warnings(nodes.values(), settings)
    warnings += _dynamic_warnings(settings, size)
    return PoolPlan(
        settings=settings,
        size=size,
        existing=nodes,
        slices=slices_by_node(reader, pool_selector(name)) if pool else {},
        pools=[*others, settings],
        pools_unread=len(others) < len(pools) - (pool is not None),
        force=force,
        first_of_cluster=not found.ours,
        warnings=warnings,
    )


def _check_nodes(reader: Reader, nodes: Collection[Json], settings: PoolSettings, *, force: bool) -> None:
    """Refuse such settings for nodes that cannot have them, and without force for those whose pods would lose GPUs."""
    refuse_terminating(nodes)
    _refuse_mps_with_split_gpus(nodes, settings)
    if not force:
        named = {node["metadata"]["name"]: node for node in nodes}
        refuse_cut_off(reader, named, settings)
        _refuse_shares_taken(reader, named, settings)


def apply_pool(writer: Writer, plan: PoolPlan) -> Iterator[Change]:
    """Write the plan, yielding what happened to each object in a fixed order.

    The first node comes first and alone: it carries the pool's settings and size if this is interrupted. With force,
    pods are evicted before the change, so that a kill in between leaves the old hardware, and those that came back
    meanwhile once more after it.
    """
    if plan.settings.mig is MigMode.DYNAMIC:
        require_counters(writer, node_manifest(NodeHardware(plan.settings, 0)))
    yield from end_what_is_over(writer)
    yield from _evict(writer, plan)
    yield from ensure_device_classes(writer, plan.pools, plan.warnings, unread=plan.pools_unread)
    indices = iter(range(plan.size))

    def write(index: int) -> list[Change]:
        declared = NodeHardware(plan.settings, index, plan.size if index == 0 else None)
        slices = plan.slices.get(declared.node_name, [])
        return bring_node(writer, plan.existing.get(index), lambda: declared, slices)

    yield from write(next(indices))
    for changes in run_ordered(write, indices):
        yield from changes
    if plan.force and plan.existing and writer.dry_run is DryRun.NONE:
        yield from evict_until_quiet(lambda: _evict(writer, plan))
    yield from _follow_with_fillers(writer, plan)


def _follow_with_fillers(writer: Writer, plan: PoolPlan) -> Iterator[Change]:
    """Filler pods of GPUs that are others now, or are gone, are made anew or taken away."""
    before = {name: hardware_of(node) for name, node in plan.nodes.items()}
    if any(is_filled(state) for declared in before.values() for _, state in declared.gpus):
        hardware = {name: with_settings(declared, plan.settings) for name, declared in before.items()}
        yield from reconcile_fillers(writer, hardware, plan.nodes, whole=False)


def _evict(writer: Writer, plan: PoolPlan) -> Iterator[Change]:
    if plan.force and plan.existing:
        losing = cut_off(writer, plan.nodes, plan.settings)
        known = {pod["metadata"]["uid"] for pod in losing}
        without = _without_shares(writer, plan.nodes, plan.settings)
        losing += [pod for pod in without if pod["metadata"]["uid"] not in known]
        yield from delete_pods(writer, plan.nodes, losing)


def _without_shares(reader: Reader, nodes: Mapping[str, Json], settings: PoolSettings) -> list[Json]:
    """The pods that have shares of GPUs now, and would have none by fewer replicas or another name of the resource."""
    old = {name: hardware_of(node) for name, node in nodes.items()}
    changing = {name: found for name, found in old.items() if found.settings.sharing != settings.sharing}
    if not changing:
        return []
    pods = pods_on(reader, {name: nodes[name] for name in changing})
    already = {pod["metadata"]["uid"] for pod in unserved(changing, pods)}
    lost = unserved({name: with_settings(found, settings) for name, found in changing.items()}, pods)
    return [pod for pod in lost if pod["metadata"]["uid"] not in already and not is_filler(pod)]


def _refuse_shares_taken(reader: Reader, nodes: Mapping[str, Json], settings: PoolSettings) -> None:
    if losing := _without_shares(reader, nodes, settings):
        raise held_error(
            f'pool "{settings.name}"',
            losing,
            "Delete those pods first, or have them evicted by add-pool with the same settings and --force.",
        )


def _dropped_warnings(nodes: Iterable[Json], settings: PoolSettings) -> list[str]:
    """A line on what was done to GPUs that are going to be others, and goes with them."""
    hardware = [hardware_of(node) for node in nodes]
    lost = [text for declared in hardware for text in dropped(declared, with_settings(declared, settings))]
    if not lost:
        return []
    return [f"{counted(len(lost), 'GPU')} will be as new: " + ", ".join(lost[:3]) + (" ..." if len(lost) > 3 else "")]


def _size_warnings(pool: Pool, count: int | None, size: int) -> list[str]:
    present = len(pool.nodes)
    if size < present:
        return [f'pool "{pool.name}" is being shrunk to {size}; finish that with: kubectl ghost sync']
    if count is not None and count < present:
        return [
            f'pool "{pool.name}" keeps its {present} nodes: add-pool never shrinks a pool; '
            f"use: kubectl ghost scale-pool {pool.name} {count}"
        ]
    return []


def _dynamic_warnings(settings: PoolSettings, size: int) -> list[str]:
    """What dynamic MIG leaves out, and what it costs: figures measured on real control planes."""
    if settings.mig is not MigMode.DYNAMIC:
        return []
    warnings = []
    if missing := uncounted(settings.model):
        warnings.append(
            f"no source gives {', '.join(missing)} of all MIG profiles of {settings.model}: they are not counted"
        )
    if size > _MANY_DYNAMIC_NODES:
        warnings.append(
            f"dynamic MIG on {size} nodes is heavy for the scheduler: 20 pods took 0.9 s to place on 4 nodes of eight "
            "GPUs, and 13.6 s on 40"
        )
    return warnings


def _refuse_mps_with_split_gpus(nodes: Iterable[Json], settings: PoolSettings) -> None:
    if settings.sharing is None or settings.sharing.kind is not SharingKind.MPS:
        return
    for node in nodes:
        hardware = with_settings(hardware_of(node), settings)
        if hardware.is_split:
            raise GhostError(
                f'node "{hardware.node_name}" has split GPUs, and the device plugin has no MPS with MIG devices',
                f"Use --sharing time-slicing=4, or first: kubectl ghost mig-split --pool {settings.name} --off",
            )


def _tainted(mode: TaintMode, found: Survey) -> bool:
    return mode is TaintMode.ALWAYS or (mode is TaintMode.AUTO and bool(found.real))


def _size(pool: Pool | None, count: int | None, *, exactly: bool) -> int:
    if exactly and count is not None:
        return count
    if pool is None:
        return count or DEFAULT_COUNT
    # A pool whose deletion was interrupted (size 0) comes back as it was, if it is asked for.
    return max(count or 0, pool.size or max(pool.nodes) + 1)


def _refuse_taken_names(found: Survey, pool: Pool | None, name: str, size: int) -> None:
    taken = found.names
    for index in range(size):
        node = taken.get(f"{name}-{index}")
        if node is not None and (pool is None or index not in pool.nodes):
            refuse_foreign(node)


def _read_nodes(reader: Reader, pool: Pool) -> dict[int, Json]:
    """The pool's whole nodes; if somebody changed a pool label by hand, the label cannot select them."""
    marked = all(node["metadata"]["labels"].get(keys.POOL_LABEL) == pool.name for node in pool.nodes.values())
    listed = reader.list(NODES, label_selector=pool_selector(pool.name) if marked else OURS).items
    pools = pools_of(listed)
    return pools[pool.name].nodes if pool.name in pools else {}
