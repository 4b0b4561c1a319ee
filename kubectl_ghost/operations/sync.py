"""`sync`: bring every node of ours back to what it is declared to have, and take away what belongs to no node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.guard import has_our_label
from kubectl_ghost.domain.hardware import NodeHardware, PoolSettings, TaintMode
from kubectl_ghost.domain.holders import assignments, is_finished, recorded_gpus, requested_gpus
from kubectl_ghost.domain.keys import GPUS_ANNOTATION, Json
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.device_classes import ensure_device_classes
from kubectl_ghost.operations.fleet import OURS, Pool, hardware_of, pools_of, survey
from kubectl_ghost.operations.reconcile import update_node


def sync(writer: Writer, warnings: list[str]) -> Iterator[Change]:
    """Reconcile every pool in turn: the settings of a pool's first node hold for all of its nodes.

    Args:
        warnings: receives a line for what the server does not allow.
    """
    real = bool(survey(writer).real)
    pools = pools_of(writer.list(NODES, label_selector=OURS).items)
    settings = {name: _settings(pool, real=real) for name, pool in pools.items()}
    yield from ensure_device_classes(writer, settings.values(), warnings)
    slices = _slices_by_node(writer)
    for name, pool in pools.items():
        yield from _sync_pool(writer, pool, settings[name], slices)
    yield from _delete_strays(writer, pools, slices)
    yield from _record_assignments(writer, pools)


def _settings(pool: Pool, *, real: bool) -> PoolSettings:
    if pool.settings.taint is TaintMode.AUTO:
        return replace(pool.settings, tainted=real)
    return pool.settings


def _slices_by_node(writer: Writer) -> dict[str, list[Json]]:
    slices: dict[str, list[Json]] = defaultdict(list)
    if writer.served(RESOURCE_SLICES):
        for item in writer.list(RESOURCE_SLICES, label_selector=OURS).items:
            if has_our_label(item):
                slices[item["spec"].get("nodeName", "")].append(item)
    return slices


def _sync_pool(
    writer: Writer, pool: Pool, settings: PoolSettings, slices: Mapping[str, list[Json]]
) -> Iterator[Change]:
    def change(declared: NodeHardware) -> NodeHardware:
        return declared.with_settings(settings)

    def repair(node: Json) -> list[Change]:
        return update_node(writer, node, change, slices.get(node["metadata"]["name"], []))

    nodes = iter(pool.nodes.values())
    yield from repair(next(nodes))
    for changes in run_ordered(repair, nodes):
        yield from changes


def _delete_strays(writer: Writer, pools: Mapping[str, Pool], slices: Mapping[str, list[Json]]) -> Iterator[Change]:
    present = {node["metadata"]["name"] for pool in pools.values() for node in pool.nodes.values()}
    for name, items in slices.items():
        if name in present:
            continue
        for item in items:
            writer.delete(RESOURCE_SLICES, item)
            yield Change(RESOURCE_SLICES, Verb.DELETED, item)


def _record_assignments(writer: Writer, pools: Mapping[str, Pool]) -> Iterator[Change]:
    """Write down, on pods of the device-plugin path, the GPUs that they have: from then on it is a fact."""
    nodes = {node["metadata"]["name"]: node for pool in pools.values() for node in pool.nodes.values()}
    hardware = {name: hardware_of(node) for name, node in nodes.items()}
    offering = {name: declared for name, declared in hardware.items() if declared.settings.advertise.capacity}
    if not offering:
        return
    on_node: dict[str, list[Json]] = defaultdict(list)
    for pod in writer.list(PODS, field_selector="spec.nodeName!=").items:
        if pod["spec"]["nodeName"] in offering and requested_gpus(pod) and not is_finished(pod):
            on_node[pod["spec"]["nodeName"]].append(pod)
    for name, pods in on_node.items():
        given = assignments(pods, offering[name].settings.gpus)
        for pod in pods:
            gpus = given[(pod["metadata"]["namespace"], pod["metadata"]["name"])]
            if gpus and not recorded_gpus(pod):
                patch = {"metadata": {"annotations": {GPUS_ANNOTATION: ",".join(gpus)}}}
                yield Change(PODS, Verb.CONFIGURED, writer.patch(PODS, pod, patch, node=nodes[name]))
