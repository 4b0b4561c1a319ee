"""The pods on simulated nodes: finding them, and deleting those whose hardware goes away."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from kubectl_ghost.cluster.errors import Conflict
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import PODS
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.changes import Change, Verb

_FEW = 20


def pods_on(reader: Reader, nodes: Mapping[str, Json]) -> list[Json]:
    """The pods bound to these nodes: asked for node by node where they are few, else from one list of all."""
    if len(nodes) <= _FEW:
        lists = run_ordered(lambda name: reader.list(PODS, field_selector=f"spec.nodeName={name}").items, nodes)
        return [pod for found in lists for pod in found]
    bound = reader.list(PODS, field_selector="spec.nodeName!=").items
    return [pod for pod in bound if pod["spec"]["nodeName"] in nodes]


def delete_pods(writer: Writer, nodes: Mapping[str, Json], pods: list[Json]) -> Iterator[Change]:
    """Delete pods at once, without a grace period: the hardware that they stand on is going.

    Args:
        nodes: the simulated nodes, by name: the guard's evidence for each pod.
        pods: pods on those nodes.
    """

    def delete(pod: Json) -> Change:
        # Another pod of that name (of a StatefulSet, say) has taken its place: the one that was meant has gone.
        with contextlib.suppress(Conflict):
            writer.delete(PODS, pod, node=nodes[pod["spec"]["nodeName"]], grace_seconds=0)
        return Change(PODS, Verb.DELETED, pod)

    yield from run_ordered(delete, pods)
