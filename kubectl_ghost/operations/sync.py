"""`sync`: bring every node of ours back to what it is declared to have, and take away what belongs to no node."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kubectl_ghost.cluster.errors import Conflict, NotFound
from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import NodeHardware, PoolSettings, TaintMode
from kubectl_ghost.domain.holders import assignments, is_finished, recorded_gpus, requested_gpus
from kubectl_ghost.domain.keys import GPUS_ANNOTATION, Json
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.delete_pool import delete_nodes, delete_pools
from kubectl_ghost.operations.device_classes import ensure_device_classes
from kubectl_ghost.operations.fleet import (
    OURS,
    Pool,
    hardware_of,
    pools_of,
    refuse_terminating,
    survey,
    unmarked_warnings,
)
from kubectl_ghost.operations.holdings import refuse_cut_off
from kubectl_ghost.operations.reconcile import bring_node, update_node
from kubectl_ghost.operations.slices import slices_by_node


def sync(writer: Writer, warnings: list[str]) -> Iterator[Change]:
    """Reconcile every pool in turn: the settings and the size on a pool's first node hold for all of it.

    What a kill has left half done is finished: nodes that are missing are made, those beyond the size go, and so does
    a pool that was being deleted.

    Args:
        warnings: receives a line for what the server does not allow.

    Raises:
        GhostError: before anything is written, if finishing a pool's change would take GPUs from pods; after all the
            others have been reconciled, if a declaration cannot be read.
    """
    found = survey(writer)
    warnings += unmarked_warnings(found)
    real = bool(found.real)
    # Slices before nodes: one that is published in between then has its node in the list and is no stray.
    slices = slices_by_node(writer, OURS)
    everything = pools_of(writer.list(NODES, label_selector=OURS).items)
    readable, problems = _readable(everything)
    going = [pool for pool in readable.values() if pool.size == 0]
    pools = {name: pool for name, pool in readable.items() if pool.size}
    refuse_terminating(node for pool in pools.values() for node in pool.nodes.values())
    settings = {name: _settings(pool.settings, real=real) for name, pool in pools.items()}
    for name, pool in pools.items():
        refuse_cut_off(writer, pool.by_name, settings[name])
    yield from ensure_device_classes(writer, settings.values(), warnings, unread=bool(problems))
    for pool in pools.values():
        yield from _sync_pool(writer, pool, slices, real=real)
    yield from _delete_strays(writer, everything, slices)
    yield from _record_assignments(writer, pools, settings)
    if going:
        yield from delete_pools(writer, going, [pool for pool in everything.values() if pool not in going], warnings)
    if problems:
        raise problems[0]


def _readable(pools: Mapping[str, Pool]) -> tuple[dict[str, Pool], list[GhostError]]:
    """The pools all of whose declarations can be read, and what is wrong with the others."""
    good, problems = {}, []
    for name, pool in pools.items():
        try:
            for node in pool.nodes.values():
                hardware_of(node)
        except GhostError as error:
            problems.append(error)
        else:
            good[name] = pool
    return good, problems


def _settings(declared: PoolSettings, *, real: bool) -> PoolSettings:
    return replace(declared, tainted=real) if declared.taint is TaintMode.AUTO else declared


def _sync_pool(writer: Writer, pool: Pool, slices: Mapping[str, list[Json]], *, real: bool) -> Iterator[Change]:
    first, *others = pool.nodes
    name = pool.first["metadata"]["name"]
    changes = update_node(
        writer,
        pool.first,
        lambda declared: replace(declared, settings=_settings(declared.settings, real=real)),
        slices.get(name, []),
    )
    yield from changes
    settings = hardware_of(changes[0].body).settings

    def reread() -> None:
        nonlocal settings
        settings = hardware_of(writer.get(NODES, name)).settings

    def repair(index: int) -> list[Change]:
        def declare() -> NodeHardware:
            return NodeHardware(settings, index, pool.size if index == 0 else None)

        # Whoever writes to the pool at this moment may have given it other settings than were listed: hence reread.
        return bring_node(writer, pool.nodes.get(index), declare, slices.get(f"{pool.name}-{index}", []), reread)

    wanted = {index for index in {*others, *range(pool.size)} if index < pool.size} - {first}
    for changes in run_ordered(repair, sorted(wanted)):
        yield from changes
    if pool.surplus and Pool(pool.name, {first: writer.get(NODES, name)}).size == pool.size:
        yield from delete_nodes(writer, pool.surplus)


def _delete_strays(writer: Writer, pools: Mapping[str, Pool], slices: Mapping[str, list[Json]]) -> Iterator[Change]:
    present = {name for pool in pools.values() for name in pool.by_name}
    # Those that were missing have been made meanwhile.
    present |= {f"{name}-{index}" for name, pool in pools.items() for index in range(_declared_size(pool))}
    for name, items in slices.items():
        for item in items if name not in present else ():
            writer.delete(RESOURCE_SLICES, item)
            yield Change(RESOURCE_SLICES, Verb.DELETED, item)


def _declared_size(pool: Pool) -> int:
    try:
        return pool.size
    except GhostError:
        return 0


def _record_assignments(
    writer: Writer, pools: Mapping[str, Pool], settings: Mapping[str, PoolSettings]
) -> Iterator[Change]:
    """Write down, on pods of the device-plugin path, the GPUs that they have: from then on it is a fact."""
    nodes = {name: node for pool in pools.values() for name, node in pool.by_name.items()}
    offered = {
        name: settings[pool.name].gpus
        for pool in pools.values()
        if settings[pool.name].advertise.capacity
        for name in pool.by_name
    }
    on_node: dict[str, list[Json]] = defaultdict(list)
    for pod in writer.list(PODS, field_selector="spec.nodeName!=").items if offered else ():
        if pod["spec"]["nodeName"] in offered and requested_gpus(pod) and not is_finished(pod):
            on_node[pod["spec"]["nodeName"]].append(pod)
    records = []
    for name, pods in on_node.items():
        given = assignments(pods, offered[name])
        for pod in pods:
            gpus = given[(pod["metadata"]["namespace"], pod["metadata"]["name"])]
            if gpus and not recorded_gpus(pod):
                records.append((pod, gpus))

    def record(item: tuple[Json, tuple[str, ...]]) -> Change | None:
        pod, gpus = item
        patch = {"metadata": {"annotations": {GPUS_ANNOTATION: ",".join(gpus)}}}
        # A pod that changes or ends just now is recorded the next time.
        with contextlib.suppress(Conflict, NotFound):
            return Change(PODS, Verb.CONFIGURED, writer.patch(PODS, pod, patch, node=nodes[pod["spec"]["nodeName"]]))
        return None

    yield from filter(None, run_ordered(record, records))
