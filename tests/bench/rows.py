"""The rows: what is measured, against whom, and in what state the cluster is meanwhile."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kubectl_ghost.cluster.kubeconfig import Overrides, load
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.transport import Transport
from kubectl_ghost.operations.waiting import wait_ready
from tests.bench.faults import fault_rows
from tests.bench.measure import Figure, Row, Sample, run, timed
from tests.bench.metrics import metrics_rows, mig_rows
from tests.e2e.support import E2ECluster

SMALL = 2
NODES = 1000
LARGE = 5000
PLANNED = 10_000
_PAUSE_SECONDS = 3.0
_SETTLE_SECONDS = 5.0
"""Controllers and kwok go on writing after a bulk change; the next measurement waits until they are done."""


@dataclass
class Bench:
    """A cluster and how often everything is measured on it."""

    cluster: E2ECluster
    runs: int

    def ghost(self, *arguments: str) -> Sample:
        """Time our command."""
        return run([sys.executable, "-m", "kubectl_ghost", *arguments], self.cluster.environment())

    def kubectl(self, *arguments: str) -> Sample:
        """Time kubectl."""
        return run([str(self.cluster.bin_dir / "kubectl"), *arguments], self.cluster.environment())

    def kwokctl_scale(self, nodes: int) -> Sample:
        """Time `kwokctl scale node`: bare nodes, no GPUs, no slices."""
        command = [str(self.cluster.bin_dir / "kwokctl"), "--name", self.cluster.name]
        environment = {**self.cluster.environment(), "KWOK_WORKDIR": str(self.cluster.logs_dir.parents[2])}
        return run([*command, "scale", "node", "peer", f"--replicas={nodes}"], environment)

    def ready(self, selector: str, names: list[str]) -> None:
        """Return when these nodes are Ready: the same watch for us and for the peer."""
        target = load(Overrides(kubeconfig=str(self.cluster.kubeconfig)), {})
        wait_ready(Reader(Transport(target)), selector, names, timeout=600, progress=lambda *_: None)

    def settle(self) -> None:
        """Wait until nothing has been written to nodes for a while."""
        before = None
        while before != (now := self._versions()):
            before = now
            time.sleep(_SETTLE_SECONDS)

    def _versions(self) -> str:
        command = [
            str(self.cluster.bin_dir / "kubectl"),
            "get",
            "nodes",
            "-o",
            "custom-columns=:.metadata.resourceVersion",
        ]
        return subprocess.run(
            command, env=self.cluster.environment(), capture_output=True, text=True, check=True
        ).stdout


def _commands(bench: Bench) -> Iterator[Row]:
    yield _start_up(bench)
    yield _small_status(bench)
    yield _plan_only(bench)


def _all_faults(bench: Bench) -> Iterator[Row]:
    yield from _faults(bench, SMALL, "<= 0.3 s", "0.085 s")
    yield from _faults(bench, NODES, "<= 1 s", "1.7-20 s")


def _start_up(bench: Bench) -> Row:
    row = Row("kubectl-ghost --help", "kubectl --help", "<= 0.15 s")
    bench.ghost("--help")
    for _ in range(bench.runs):
        row.ours.append(bench.ghost("--help"))
        row.peer.append(bench.kubectl("--help"))
    return row


def _small_status(bench: Bench) -> Row:
    bench.ghost("add-pool")
    row = Row("status, 4 nodes", "kubectl get nodes", "<= 3 x")
    bench.ghost("status")
    bench.kubectl("get", "nodes")
    for _ in range(max(bench.runs, 5)):
        row.ours.append(bench.ghost("status"))
        row.peer.append(bench.kubectl("get", "nodes"))
    bench.ghost("delete-pool", "--all")
    return row


def _faults(bench: Bench, nodes: int, goal: str, peer: str) -> Iterator[Row]:
    bench.ghost("add-pool", "--count", str(nodes))
    bench.settle()
    yield from fault_rows(bench.cluster, nodes, bench.runs, goal, peer)
    bench.ghost("delete-pool", "--all")


def _plan_only(bench: Bench) -> Row:
    row = Row(f"plan only: add-pool --count {PLANNED} --dry-run=client", "", "<= 2 s, < 300 MB")
    for _ in range(bench.runs):
        row.ours.append(bench.ghost("add-pool", "--count", str(PLANNED), "--dry-run=client"))
    return row


def _bulk(bench: Bench) -> Iterator[Row]:
    peer = "kwokctl scale node"
    create = Row(f"add-pool --wait=false, {NODES} nodes of 8 GPUs", peer, "<= 0.7 x")
    ready = Row("the same until every node is Ready", peer, "<= 1.2 x")
    delete = Row("delete-pool of the same", f"{peer} --replicas=0", "<= 1.2 x")
    for _ in range(bench.runs):
        _one_bulk(bench, create.peer, ready.peer, delete.peer, ours=False)
        _one_bulk(bench, create.ours, ready.ours, delete.ours, ours=True)
    yield from (create, ready, delete)


def _one_bulk(bench: Bench, create: list[Sample], ready: list[Sample], delete: list[Sample], *, ours: bool) -> None:
    bench.settle()

    def make() -> None:
        if ours:
            create.append(bench.ghost("add-pool", "--count", str(NODES), "--wait=false"))
            bench.ready("kubectl-ghost.dev/pool=node", [f"node-{index}" for index in range(NODES)])
        else:
            create.append(bench.kwokctl_scale(NODES))
            bench.ready("kwok.x-k8s.io/kwokctl-scale=peer", [f"peer-{index:06d}" for index in range(NODES)])

    ready.append(timed(make))
    # The controller manager goes on writing to the new nodes for a minute, 20 requests a second, whoever made them.
    time.sleep(_PAUSE_SECONDS)
    delete.append(bench.ghost("delete-pool", "node") if ours else bench.kwokctl_scale(0))


def _metrics(bench: Bench) -> Iterator[Row | Figure]:
    bench.ghost("add-pool", "--count", str(NODES))
    bench.settle()
    yield from metrics_rows(bench.cluster, NODES, bench.runs)
    bench.ghost("delete-pool", "--all")
    bench.ghost("add-pool", "--count", str(NODES))
    bench.ghost("mig-split", "--all", "--config", "all-1g.10gb")
    bench.settle()
    yield from mig_rows(bench.cluster, NODES, bench.runs)
    bench.ghost("delete-pool", "--all")


def _large(bench: Bench) -> Iterator[Row]:
    bench.ghost("add-pool", "--count", str(LARGE), "--timeout", "20m")
    # To wait until the controller manager is done with so many nodes would take a quarter of an hour.
    time.sleep(_PAUSE_SECONDS)
    status = Row(f"status, {LARGE} nodes", "kubectl get nodes", "<= 0.5 x")
    gpus = Row(f"get gpus, {LARGE} nodes", "kubectl get nodes", "<= 0.5 x")
    for _ in range(bench.runs):
        peer = bench.kubectl("get", "nodes")
        status.ours.append(bench.ghost("status"))
        gpus.ours.append(bench.ghost("get", "gpus"))
        status.peer.append(peer)
        gpus.peer.append(peer)
    yield from (status, gpus)
    bench.ghost("delete-pool", "--all")


PARTS: dict[str, Callable[[Bench], Iterator[Row | Figure]]] = {
    "commands": _commands,
    "bulk": _bulk,
    "faults": _all_faults,
    "metrics": _metrics,
    "large": _large,
}
"""What can be measured apart; each leaves the cluster empty."""
