"""Pods in bulk on simulated nodes, past the scheduler: it is not what is measured."""

from __future__ import annotations

from kubectl_ghost.cluster.kubeconfig import Overrides, load
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import PODS
from kubectl_ghost.cluster.transport import Transport
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.domain.keys import GPUS_ANNOTATION, Json
from tests.e2e.fleet import pod
from tests.e2e.support import E2ECluster, eventually

_RUNNING_WITHIN = 1200.0
"""kwok sets some fifty pods a second running."""
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


def reader_of(cluster: E2ECluster) -> Reader:
    """A connection of its own to a cluster."""
    return Reader(Transport(load(Overrides(kubeconfig=str(cluster.kubeconfig)), {})))


def fill(cluster: E2ECluster, nodes: int, gpus: int) -> None:
    """Give every GPU of the pool `node` to a pod of its own, by `nvidia.com/gpu`, and wait until all of them run."""
    reader = reader_of(cluster)

    def create(number: int) -> None:
        body: Json = pod(f"load-{number}", gpus=1, nodeName=f"node-{number % nodes}", terminationGracePeriodSeconds=0)
        reader.transport.request("POST", "/api/v1/namespaces/default/pods", body=body, accept=_METADATA_ONLY)

    for _ in run_ordered(create, range(nodes * gpus)):
        pass
    eventually(lambda: not unsettled(reader), _RUNNING_WITHIN)


def unsettled(reader: Reader) -> int:
    """How many pods do not run yet."""
    return len(reader.list(PODS, field_selector="status.phase!=Running", metadata_only=True).items)


def unrecorded(reader: Reader) -> int:
    """How many pods have no GPUs on record."""
    pods = reader.list(PODS, metadata_only=True).items
    return sum(GPUS_ANNOTATION not in (item["metadata"].get("annotations") or {}) for item in pods)
