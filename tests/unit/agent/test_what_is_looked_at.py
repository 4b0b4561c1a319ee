"""A scrape of one node looks at that node alone, however much has changed elsewhere; nothing is lost by it."""

from __future__ import annotations

import re

import pytest

from ghost_agent import snapshot as snapshot_module
from ghost_agent.fleet import NODES, PODS, Fleet
from ghost_agent.options import agent_options
from ghost_agent.snapshot import Snapshot
from tests.unit.agent.fleets import a_node, a_pod

POD = re.compile(r'^DCGM_FI_DEV_GPU_UTIL\{gpu="(\d+)".*Hostname="([^"]+)".*?(?:,pod="([^"]+)")?\} ', re.MULTILINE)


@pytest.fixture
def looked_at(monkeypatch):
    """The names of the nodes that have been derived anew."""
    names = []
    original = snapshot_module.listed_node

    def counting(name, *rest):
        names.append(name)
        return original(name, *rest)

    monkeypatch.setattr(snapshot_module, "listed_node", counting)
    return names


@pytest.fixture
def fleet():
    known = Fleet()
    for index in range(30):
        put(known, NODES, a_node(index))
    return known


def put(fleet, collection, item):
    fleet.put(collection, fleet.keep(collection, item))


def shown(snapshot, node_name=None):
    """(node, GPU, pod) of all GPUs, or of a node's."""
    return [(node, int(gpu), pod) for gpu, node, pod in POD.findall("".join(snapshot.text(node_name)))]


def test_a_scrape_of_a_node_derives_that_node_alone_and_only_when_it_has_changed(fleet, looked_at):
    snapshot = Snapshot(fleet, agent_options(), problem=print)
    assert len(snapshot.nodes()) == 30
    looked_at.clear()
    for index in range(30):
        put(fleet, PODS, a_pod(f"pod-{index}", f"node-{index}"))
    assert shown(snapshot, "node-7") == [("node-7", 0, "pod-7"), ("node-7", 1, "")]
    assert snapshot.node("node-7").unrecorded
    assert shown(snapshot, "node-7") == [("node-7", 0, "pod-7"), ("node-7", 1, "")]
    assert looked_at == ["node-7"]


def test_what_a_scrape_of_a_node_left_aside_is_in_the_next_scrape_of_everything(fleet, looked_at):
    snapshot = Snapshot(fleet, agent_options(), problem=print)
    snapshot.nodes()
    for index in range(30):
        put(fleet, PODS, a_pod(f"pod-{index}", f"node-{index}"))
    shown(snapshot, "node-7")
    looked_at.clear()
    assert shown(snapshot) == [
        (f"node-{index}", gpu, "" if gpu else f"pod-{index}") for index in range(30) for gpu in range(2)
    ]
    assert sorted(looked_at) == sorted(f"node-{index}" for index in range(30) if index != 7)


def test_pods_without_a_record_are_found_on_all_nodes_after_a_scrape_of_one(fleet):
    snapshot = Snapshot(fleet, agent_options(), problem=print)
    for index in range(30):
        put(fleet, PODS, a_pod(f"pod-{index}", f"node-{index}"))
    shown(snapshot, "node-7")
    found = {(item.pod["metadata"]["name"], item.devices) for item in snapshot.unrecorded()}
    assert found == {(f"pod-{index}", ("gpu-0",)) for index in range(30)}


def test_nodes_that_come_and_go_are_in_their_order(fleet):
    snapshot = Snapshot(fleet, agent_options(), problem=print)
    snapshot.nodes()
    fleet.remove(NODES, a_node(9))
    put(fleet, NODES, a_node(100))
    assert [node.name for node in snapshot.nodes()] == [
        *(f"node-{index}" for index in range(30) if index != 9),
        "node-100",
    ]
    # A scrape of the node alone is enough for its place among all.
    fleet.remove(NODES, a_node(8))
    with pytest.raises(KeyError):
        snapshot.node("node-8")
    put(fleet, NODES, a_node(9))
    assert snapshot.node("node-9").name == "node-9"
    assert [node.name for node in snapshot.nodes()] == [
        *(f"node-{index}" for index in range(30) if index != 8),
        "node-100",
    ]
