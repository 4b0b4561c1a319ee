"""Recording on pods which GPUs they have."""

from __future__ import annotations

import threading

from ghost_agent.fleet import Fleet
from ghost_agent.options import agent_options
from ghost_agent.recording import Recorder
from ghost_agent.snapshot import Snapshot
from ghost_agent.watcher import Watcher
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import GPUS_ANNOTATION
from tests.unit.agent.fleets import Cluster, a_node, a_pod


def recorder(cluster):
    """A recorder that has read a cluster, and what it tells."""
    told = []
    fleet = Fleet()
    watcher = Watcher(cluster, fleet, problem=told.append)
    watcher.list_once()
    return Recorder(cluster, watcher, Snapshot(fleet, agent_options(), problem=told.append), problem=told.append), told


def test_every_pod_without_a_record_gets_one():
    pods = [a_pod(f"pod-{index}", f"node-{index // 2}") for index in range(60)]
    pods[7]["metadata"]["annotations"] = {GPUS_ANNOTATION: "gpu-0"}
    cluster = Cluster(nodes=[a_node(index) for index in range(30)], pods=pods)
    writing, told = recorder(cluster)
    writing.round()
    wanted = {(f"pod-{index}", f"node-{index // 2}", (f"gpu-{index % 2}",)) for index in range(60) if index != 7}
    wanted = wanted - {("pod-6", "node-3", ("gpu-0",))} | {("pod-6", "node-3", ("gpu-1",))}
    recorded = [entry[1:] for entry in cluster.asked if entry[0] == "record"]
    assert sorted(recorded) == sorted(wanted)
    assert told == []


def test_several_are_written_at_once():
    both = threading.Barrier(2, timeout=30)

    class Slow(Cluster):
        def record(self, pod, node, devices):
            both.wait()
            super().record(pod, node, devices)

    cluster = Slow(nodes=[a_node(0)], pods=[a_pod("pod-0"), a_pod("pod-1")])
    writing, told = recorder(cluster)
    writing.round()
    assert sorted(cluster.asked[-2:]) == [
        ("record", "pod-0", "node-0", ("gpu-0",)),
        ("record", "pod-1", "node-0", ("gpu-1",)),
    ]
    assert told == []


def test_one_that_cannot_be_written_is_told_and_does_not_stop_the_others():
    class Refusing(Cluster):
        def record(self, pod, node, devices):
            if pod["metadata"]["name"] == "pod-3":
                raise GhostError("pods is forbidden")
            super().record(pod, node, devices)

    cluster = Refusing(
        nodes=[a_node(0), a_node(1)], pods=[a_pod(f"pod-{index}", f"node-{index // 2}") for index in range(4)]
    )
    writing, told = recorder(cluster)
    assert writing.round() is True
    assert sorted(entry[1] for entry in cluster.asked if entry[0] == "record") == ["pod-0", "pod-1", "pod-2"]
    assert told == ["cannot record which GPUs pods have: pods is forbidden"]


def test_where_nothing_can_be_written_it_gives_up_for_a_while():
    asked = []

    class Forbidding(Cluster):
        def record(self, pod, node, devices):
            asked.append(pod["metadata"]["name"])
            raise GhostError("pods is forbidden")

    pods = [a_pod(f"pod-{index}", f"node-{index // 8}") for index in range(200)]
    cluster = Forbidding(nodes=[a_node(index) for index in range(25)], pods=pods)
    writing, _ = recorder(cluster)
    assert writing.round() is False
    assert 8 < len(asked) < 40


def test_after_its_end_nothing_is_written():
    cluster = Cluster(nodes=[a_node(0)], pods=[a_pod("pod-0")])
    writing, _ = recorder(cluster)
    writing.stop()
    writing.round()
    assert [entry for entry in cluster.asked if entry[0] == "record"] == []
