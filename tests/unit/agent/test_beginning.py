"""The agent's beginning, and what it tells."""

from __future__ import annotations

from ghost_agent.agent import Agent
from ghost_agent.fleet import COLLECTIONS, Fleet
from ghost_agent.options import agent_options
from ghost_agent.watcher import Watcher
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import GPU_UTIL_ANNOTATION
from tests.e2e.support import eventually
from tests.unit.agent.fleets import Cluster, a_node, a_pod


def test_watching_goes_on_where_the_first_look_ended():
    cluster = Cluster(nodes=[a_node(0)])
    watcher = Watcher(cluster, Fleet(), problem=print)
    watcher.list_once()
    watcher.start()
    eventually(lambda: {entry[1] for entry in cluster.asked if entry[0] == "watch"} == set(COLLECTIONS))
    watcher.stop()
    assert [entry for entry in cluster.asked if entry[0] == "list"] == [("list", name) for name in COLLECTIONS]
    assert ("watch", "pods", "pods-version") in cluster.asked


def test_without_a_first_look_watching_begins_with_one():
    cluster = Cluster(nodes=[a_node(0)])
    watcher = Watcher(cluster, Fleet(), problem=print)
    watcher.start()
    assert watcher.wait(30)
    watcher.stop()
    assert sorted(entry for entry in cluster.asked if entry[0] == "list") == sorted(
        ("list", name) for name in COLLECTIONS
    )


def test_a_problem_is_told_once_and_not_remembered_for_ever():
    told = []
    cluster = Cluster(nodes=[a_node(0)], pods=[a_pod("pod-0", **{GPU_UTIL_ANNOTATION: "much"})])
    agent = Agent(cluster, agent_options(), address="127.0.0.1", port=0, problem=told.append)

    def look(*pods):
        cluster.collections["pods"] = list(pods)
        agent.watcher.list_once()
        agent.snapshot.nodes()

    look(a_pod("pod-0", **{GPU_UTIL_ANNOTATION: "much"}))
    look(a_pod("pod-0", **{GPU_UTIL_ANNOTATION: "much"}))
    assert len(told) == 1
    assert 'pod "default/pod-0"' in told[0]
    for index in range(1, 1001):
        look(a_pod(f"pod-{index}", **{GPU_UTIL_ANNOTATION: "much"}))
    assert len(told) == 1001
    look(a_pod("pod-0", **{GPU_UTIL_ANNOTATION: "much"}))
    assert told[1001:] == told[:1]
    agent.server.server_close()


def test_the_agent_goes_on_when_nobody_can_be_told():
    """As with `2>&1 | head`, or a log on a disk that is full."""
    asked = []

    def gone(text):
        asked.append(text)
        raise BrokenPipeError

    class Failing(Cluster):
        def watch(self, collection, version, seconds):
            super().watch(collection, version, seconds)
            if self.asked.count(("watch", collection, version)) == 1:
                raise GhostError(f"{collection} cannot be watched")
            return iter(())

    cluster = Failing(nodes=[a_node(0)], pods=[a_pod("pod-0", **{GPU_UTIL_ANNOTATION: "much"})])
    agent = Agent(cluster, agent_options(read_only=True), address="127.0.0.1", port=0, problem=gone)
    agent.watcher.list_once()
    assert [node.name for node in agent.snapshot.nodes()] == ["node-0"]
    agent.watcher.start()
    eventually(lambda: all(cluster.asked.count(("watch", name, f"{name}-version")) > 1 for name in COLLECTIONS))
    agent.watcher.stop()
    agent.server.server_close()
    assert len(asked) == 4
