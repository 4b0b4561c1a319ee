"""How long a fault takes to become a deleted pod, as somebody sees it who watches the cluster."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kubectl_ghost.cluster.kubeconfig import Overrides, load
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from kubectl_ghost.cluster.transport import Transport
from kubectl_ghost.domain.keys import Json
from tests.bench.measure import Row, Sample
from tests.e2e.fleet import apply, claim_template, deployment, pod, running
from tests.e2e.support import E2ECluster

_APP = "victim"
_SECONDS = 60.0


@dataclass
class _Seen:
    """When each of the two things happened that are waited for."""

    written: float | None = None
    deleted: float | None = None
    done: threading.Event = field(default_factory=threading.Event)


def fault_rows(cluster: E2ECluster, nodes: int, runs: int, goal: str, peer: str) -> list[Row]:
    """A pod that holds a GPU through a claim loses it, a number of times; the fleet is there and at rest.

    Args:
        peer: what the nearest peer takes, quoted rather than measured: it is not part of this project.
    """
    where = f"{nodes:,} nodes"
    writing = Row(f"fault xid, {where}: slice written -> pod deleted", "", f"{goal} (peer, quoted: {peer})")
    starting = Row(f"fault xid, {where}: command started -> pod deleted", "", "")
    apply(cluster, claim_template(_APP, {}), deployment(pod(_APP, template=_APP), 1))
    for _ in range(runs):
        running(cluster, _APP)
        started, seen = _one_fault(cluster)
        assert seen.written is not None
        assert seen.deleted is not None
        writing.ours.append(Sample(seen.deleted - seen.written, 0.0, 0.0))
        starting.ours.append(Sample(seen.deleted - started, 0.0, 0.0))
        cluster.ghost("fault", "clear", "--all")
    cluster.kubectl("delete", "deployments,resourceclaimtemplates", "--all", "--wait=true")
    return [writing, starting]


def _one_fault(cluster: E2ECluster) -> tuple[float, _Seen]:
    target = load(Overrides(kubeconfig=str(cluster.kubeconfig)), {})
    reader = Reader(Transport(target))
    (claim,) = [item for item in reader.list(RESOURCE_CLAIMS).items if item.get("status", {}).get("allocation")]
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    (victim,) = reader.list(PODS, label_selector=f"app={_APP}").items
    seen = _Seen()

    def slice_event(kind: str, item: Json) -> None:
        if seen.written is None and "taints" in json.dumps(item["spec"]):
            seen.written = time.perf_counter()

    def pod_event(kind: str, item: Json) -> None:
        if kind == "DELETED" and item["metadata"]["uid"] == victim["metadata"]["uid"]:
            seen.deleted = time.perf_counter()
            seen.done.set()

    node_name = f"spec.nodeName={result['pool']}"
    for resource, fields, look in ((RESOURCE_SLICES, node_name, slice_event), (PODS, node_name, pod_event)):
        _watch(Reader(Transport(target)), resource, fields, look)
    started = time.perf_counter()
    command = [sys.executable, "-m", "kubectl_ghost", "fault", "xid", result["pool"], result["device"]]
    process = subprocess.Popen(command, env=cluster.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, errors = process.communicate()
    if process.returncode or not seen.done.wait(_SECONDS):
        raise RuntimeError(f"the pod was not deleted: {errors.decode()}")
    return started, seen


def _watch(reader: Reader, resource: Resource, fields: str, look: Callable[[str, Json], None]) -> None:
    """Follow a type from now on in a thread that ends with the process at the latest."""
    version = reader.list(resource, field_selector=fields).resource_version

    def follow() -> None:
        for kind, item in reader.watch(resource, resource_version=version, field_selector=fields, timeout=_SECONDS):
            look(kind, item)

    threading.Thread(target=follow, daemon=True).start()
