"""The metrics agent as a process: what scrapes, recording and rest cost it, and how soon a fault is in a scrape."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION
from tests.bench.agent_load import fill, reader_of, unrecorded
from tests.bench.agent_process import AgentProcess, cpu_per_second, serving
from tests.bench.measure import Figure, Row, Sample
from tests.e2e.support import E2ECluster, eventually

_GPUS = 8
_REST_SECONDS = 20.0
_RECORDED_WITHIN = 1200.0
_XID = 79
_HISTORY = ("--from", "5m", "--step", "30s", "--age", "1h")


def metrics_rows(cluster: E2ECluster, nodes: int, runs: int) -> Iterator[Row | Figure]:
    """All rows of whole GPUs, each held by a pod; the fleet is there and at rest, and stays."""
    gpus = nodes * _GPUS
    where = f"{nodes:,} nodes, {gpus:,} pods"
    fill(cluster, nodes, _GPUS)
    with serving(cluster) as agent:
        yield from _recording(cluster, agent, gpus)
        yield from _scrapes(agent, runs, f"{gpus:,} GPUs", "3.0 s for 56,000 series", "18,500")
        steady, peak = agent.memory()
        yield Figure(f"metrics serve, {where}: resident MB", "< 300", ours=[steady])
        yield Figure(f"metrics serve, {where}: most resident MB", "< 300", ours=[peak])
        yield Figure(
            "metrics serve at rest: CPU seconds a second", "about 0", ours=[cpu_per_second(agent, _REST_SECONDS)]
        )
        yield from _faults(cluster, agent, nodes, runs)
    yield from _backfill(cluster, gpus, runs)


def mig_rows(cluster: E2ECluster, nodes: int, runs: int) -> Iterator[Figure]:
    """All GPUs split into seven instances, which nobody holds; the fleet is split and at rest."""
    instances = f"{nodes * _GPUS * 7:,} MIG instances"
    with serving(cluster, "--read-only") as agent:
        yield from _scrapes(agent, runs, instances, "28 s for 392,000 series", "14,000")
        yield Figure(f"metrics serve, {instances}: most resident MB", "", "1,100", [agent.memory()[1]])


def _recording(cluster: E2ECluster, agent: AgentProcess, pods: int) -> Iterator[Figure]:
    """From the agent's beginning until every pod has its GPUs on record."""
    began, cpu = time.monotonic(), agent.cpu()
    reader = reader_of(cluster)
    eventually(lambda: not unrecorded(reader), _RECORDED_WITHIN)
    seconds = time.monotonic() - began
    yield Figure(f"recording GPUs on {pods:,} pods: pods a second", "", ours=[pods / seconds])
    yield Figure("meanwhile: CPU seconds a second of the agent", "", ours=[(agent.cpu() - cpu) / seconds])


def _scrapes(agent: AgentProcess, runs: int, what: str, cost_quoted: str, rate_quoted: str) -> Iterator[Figure]:
    """Everything from a warm snapshot: the first scrape derives the fleet and is not counted."""
    cost = Figure(f"scrape of {what}: CPU seconds", "", cost_quoted)
    rate = Figure(f"scrape of {what}: series per CPU second", ">= 400,000", rate_quoted)
    agent.get("/metrics")
    for _ in range(max(runs, 5)):
        before = agent.cpu()
        body = agent.get("/metrics")
        cost.ours.append(agent.cpu() - before)
        series = body.count(b"\n") - body.count(b"\n#") - body.startswith(b"#")
        rate.ours.append(series / cost.ours[-1])
    yield from (cost, rate)


def _faults(cluster: E2ECluster, agent: AgentProcess, nodes: int, runs: int) -> Iterator[Row]:
    starting = Row("fault xid: command started -> in a scrape of the node", "", "")
    writing = Row("fault xid: node written -> in a scrape of the node", "", "<= 1 s")
    for number in range(max(runs, 5)):
        command, write = _one_fault(cluster, agent, f"node-{number * 7 % nodes}")
        starting.ours.append(command)
        writing.ours.append(write)
    cluster.ghost("fault", "clear", "--all")
    yield from (starting, writing)


def _one_fault(cluster: E2ECluster, agent: AgentProcess, node: str) -> tuple[Sample, Sample]:
    """How long it took to be seen in a scrape: since the command began, and since a watch showed the node as broken."""
    reader, written = reader_of(cluster), threading.Event()
    name = f"metadata.name={node}"
    found = reader.list(NODES, field_selector=name)
    healthy = found.items[0]["metadata"]["annotations"][HARDWARE_ANNOTATION]
    moments: list[float] = []

    def follow() -> None:
        changes = reader.watch(NODES, resource_version=found.resource_version, field_selector=name, timeout=60)
        for _, item in changes:
            if item["metadata"]["annotations"][HARDWARE_ANNOTATION] != healthy:
                moments.append(time.perf_counter())
                written.set()
                return

    threading.Thread(target=follow, daemon=True).start()
    connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=60)
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "kubectl_ghost", "fault", "xid", node, "gpu-2", "--code", str(_XID)],
        env=cluster.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not _shows_xid(connection, node):
        if time.perf_counter() - started > 60:
            raise RuntimeError(f"XID {_XID} of {node} is in no scrape")
    seen = time.perf_counter()
    connection.close()
    if process.wait() or not written.wait(60):
        raise RuntimeError(f"the fault of {node} was not written")
    # Our own watch may be told after the agent's.
    return Sample(seen - started, 0.0, 0.0), Sample(max(0.0, seen - moments[0]), 0.0, 0.0)


def _shows_xid(connection: http.client.HTTPConnection, node: str) -> bool:
    connection.request("GET", f"/nodes/{node}/metrics")
    return f'err_code="{_XID}"'.encode() in connection.getresponse().read()


def _backfill(cluster: E2ECluster, gpus: int, runs: int) -> Iterator[Figure]:
    """A short time of the whole fleet, through a pipe, so that the disk is not what is measured."""
    rate = Figure(f"metrics backfill, {gpus:,} GPUs: samples per CPU second", "")
    memory = Figure(f"metrics backfill, {gpus:,} GPUs: most resident MB", "")
    for _ in range(runs):
        process = subprocess.Popen(
            [sys.executable, "-m", "kubectl_ghost", "metrics", "backfill", *_HISTORY],
            env=cluster.environment(),
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        samples = 0
        while piece := process.stdout.read(1 << 20):
            samples += piece.count(b"\n")
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError("metrics backfill failed")
        rate.ours.append(samples / (usage.ru_utime + usage.ru_stime))
        memory.ours.append(usage.ru_maxrss / 1024)
    yield from (rate, memory)
