"""Which nodes run pods for real, and which of those take the agent."""

import pytest

from kubectl_ghost.domain.keys import KWOK_NODE_KEY
from kubectl_ghost.domain.real_nodes import CONTROL_PLANE_TAINT, is_real, nodes_for_pods

CONTROL_PLANE = {"key": CONTROL_PLANE_TAINT, "effect": "NoSchedule"}


def node(name="worker", *, runtime="containerd://1.7.2", ready="True", labels=None, annotations=None, **spec):
    return {
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
        "spec": spec,
        "status": {
            "nodeInfo": {"containerRuntimeVersion": runtime},
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}],
        },
    }


@pytest.mark.parametrize("runtime", ["containerd://1.7.2", "cri-o://1.30.0", "docker://27.1.1"])
def test_a_node_whose_kubelet_names_its_runtime_is_real(runtime):
    assert is_real(node(runtime=runtime))


@pytest.mark.parametrize("runtime", ["kwok-0.8.0", "", "fake", "containerd://"])
def test_a_node_that_another_simulator_plays_is_not(runtime):
    assert not is_real(node(runtime=runtime))


def test_a_node_of_kwok_is_not_real_whatever_it_says():
    assert not is_real(node(annotations={KWOK_NODE_KEY: "fake"}))


def test_a_node_that_has_reported_nothing_is_not_real():
    assert not is_real({"metadata": {"name": "worker"}})
    assert nodes_for_pods([{"metadata": {"name": "worker"}, "spec": {}}]) == []


@pytest.mark.parametrize(
    "unfit",
    [
        node("unfit", ready="False"),
        node("unfit", ready="Unknown"),
        node("unfit", unschedulable=True),
        node("unfit", labels={"kubernetes.io/os": "windows"}),
        node("unfit", taints=[{"key": "dedicated", "effect": "NoSchedule"}]),
        node("unfit", taints=[{"key": "dedicated", "effect": "NoExecute"}]),
        node("unfit", taints=[CONTROL_PLANE, {"key": "dedicated", "effect": "NoSchedule"}]),
        node("unfit", runtime="kwok-0.8.0"),
        {**node("unfit"), "metadata": {"name": "unfit", "deletionTimestamp": "now"}},
    ],
)
def test_a_node_that_takes_no_pods_is_left_out(unfit):
    assert nodes_for_pods([unfit]) == []
    assert nodes_for_pods([unfit, node("fit")]) == ["fit"]


def test_a_taint_that_only_prefers_keeps_nobody_away():
    assert nodes_for_pods([node("a", taints=[{"key": "old", "effect": "PreferNoSchedule"}])]) == ["a"]


def test_the_control_planes_nodes_are_for_clusters_without_others():
    master = node("master", taints=[CONTROL_PLANE])
    assert nodes_for_pods([master]) == ["master"]
    assert nodes_for_pods([master, node("b"), node("a")]) == ["a", "b"]
