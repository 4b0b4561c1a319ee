"""Writing down, on pods of the device-plugin path, which devices they have: from then on it is a fact."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from kubectl_ghost.cluster.errors import Conflict, NotFound
from kubectl_ghost.cluster.resources import PODS
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.devices import offers
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.holders import assignments, is_finished, record_patch, requested_devices, unrecorded
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.changes import Change, Verb


def record_assignments(
    writer: Writer, nodes: Mapping[str, Json], hardware: Mapping[str, NodeHardware], pods: Iterable[Json]
) -> Iterator[Change]:
    """Record the devices of every pod on these nodes that has none on record.

    Args:
        nodes: the simulated nodes, by name: the guard's evidence.
        hardware: their declarations; a node without one is left out.
        pods: pods of the cluster, those on these nodes at least.
    """
    on_node: dict[str, list[Json]] = defaultdict(list)
    for pod in pods:
        if pod.get("spec", {}).get("nodeName") in hardware and requested_devices(pod) and not is_finished(pod):
            on_node[pod["spec"]["nodeName"]].append(pod)
    records = [
        record
        for name, found in on_node.items()
        for record in unrecorded(found, assignments(found, offers(hardware[name])))
    ]

    def record(item: tuple[Json, tuple[str, ...]]) -> Change | None:
        pod, devices = item
        # A pod that changes or ends just now is recorded the next time.
        with contextlib.suppress(Conflict, NotFound):
            done = writer.patch(PODS, pod, record_patch(devices), node=nodes[pod["spec"]["nodeName"]])
            return Change(PODS, Verb.ANNOTATED, done)
        return None

    yield from filter(None, run_ordered(record, records))
