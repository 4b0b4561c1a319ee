"""Ended in the middle, in every way: what is there is consistent, and the same command finishes the work."""

import signal

import pytest

from tests.e2e.fleet import apply, claim_template, deployment, devices_of, objects, phases, pod, running
from tests.e2e.support import eventually

NODES = 40


def end_after(process, lines, how):
    """Read so many lines of what it prints, then end it; returns its exit code and its stderr."""
    for _ in range(lines):
        process.stdout.readline()
    process.send_signal(how)
    _, errors = process.communicate()
    return process.returncode, errors


def shape(cluster):
    """Everything that the tool publishes, without what differs from one creation to the next."""
    nodes = {
        node["metadata"]["name"]: (
            node["metadata"]["labels"],
            node["metadata"]["annotations"]["kubectl-ghost.dev/hardware"],
            node["status"]["capacity"],
        )
        for node in objects(cluster, "nodes")
    }
    uids = {node["metadata"]["name"]: node["metadata"]["uid"] for node in objects(cluster, "nodes")}
    slices = {item["spec"]["nodeName"]: item["spec"] for item in objects(cluster, "resourceslices")}
    for item in objects(cluster, "resourceslices"):
        assert item["metadata"]["ownerReferences"][0]["uid"] == uids[item["spec"]["nodeName"]]
    return nodes, slices


@pytest.mark.parametrize("lines", [1, 3, 8, 25, 60])
def test_kill_9_while_creating(empty, lines):
    command = ["add-pool", "--count", "120"]
    assert end_after(empty.start(*command), lines, signal.SIGKILL)[0] == -signal.SIGKILL
    assert len(objects(empty, "nodes")) < 120
    empty.ghost("sync")
    empty.ghost(*command)
    nodes, slices = shape(empty)
    assert len(nodes) == len(slices) == 120
    assert "created" not in empty.ghost(*command).stdout


def test_without_a_count_the_same_command_finishes_too(empty):
    end_after(empty.start("add-pool"), 3, signal.SIGKILL)
    empty.ghost("add-pool")
    nodes, slices = shape(empty)
    assert list(nodes) == list(slices) == ["node-0", "node-1", "node-2", "node-3"]


def test_sync_makes_what_was_still_to_come(empty):
    end_after(empty.start("add-pool", "--count", str(NODES)), 8, signal.SIGKILL)
    empty.ghost("sync")
    nodes, slices = shape(empty)
    assert len(nodes) == len(slices) == NODES


@pytest.mark.parametrize("lines", [1, 4, 8, 12])
def test_kill_9_while_taking_gpus_from_pods(empty, lines):
    empty.ghost("add-pool", "--count", "2")
    apply(empty, claim_template("eight", {"count": 8}), deployment(pod("all", template="eight"), 2))
    running(empty, "all", 2)
    command = ["add-pool", "--gpus-per-node", "4", "--force"]
    end_after(empty.start(*command), lines, signal.SIGKILL)
    empty.ghost(*command)
    eventually(lambda: devices_of(empty, "all") == [])
    assert {len(spec["devices"]) for spec in shape(empty)[1].values()} == {4}
    assert phases(empty, "all") == ["Pending", "Pending"]


@pytest.mark.parametrize("lines", [3, 20])
def test_kill_9_while_reconfiguring(empty, lines):
    empty.ghost("add-pool", "--count", str(NODES))
    change = ["add-pool", "--gpu", "b200", "--gpus-per-node", "4", "--labels", "a=b", "--advertise", "dra"]
    assert end_after(empty.start(*change), lines, signal.SIGKILL)[0] == -signal.SIGKILL
    # sync takes the intent from the node that is written first, so it finishes the change as well.
    empty.ghost("sync")
    nodes, slices = shape(empty)
    assert {labels["nvidia.com/gpu.product"] for labels, _, _ in nodes.values()} == {"NVIDIA-B200"}
    assert {len(spec["devices"]) for spec in slices.values()} == {4}
    assert not any("nvidia.com/gpu" in capacity for _, _, capacity in nodes.values())
    assert "configured" not in empty.ghost(*change).stdout


@pytest.mark.parametrize("lines", [1, 10])
def test_kill_9_while_deleting(empty, lines):
    empty.ghost("add-pool", "--count", str(NODES))
    end_after(empty.start("scale-pool", "node", "1"), 4 + lines, signal.SIGKILL)
    empty.ghost("scale-pool", "node", "1")
    nodes, slices = shape(empty)
    assert list(nodes) == list(slices) == ["node-0"]
    empty.ghost("add-pool", "--count", str(NODES))
    end_after(empty.start("delete-pool", "node"), lines, signal.SIGKILL)
    empty.ghost("delete-pool", "node", "--ignore-not-found")
    assert objects(empty, "nodes,resourceslices,deviceclasses") == []


def test_sync_finishes_a_scale_down_and_a_deletion(empty):
    empty.ghost("add-pool", "--count", str(NODES))
    end_after(empty.start("scale-pool", "node", "2"), 4 + 6, signal.SIGKILL)
    empty.ghost("sync")
    nodes, slices = shape(empty)
    assert list(nodes) == list(slices) == ["node-0", "node-1"]
    empty.ghost("scale-pool", "node", "150")
    process = empty.start("delete-pool", "node")
    eventually(lambda: '"nodes":0' in str(objects(empty, "nodes")))
    process.kill()
    process.communicate()
    empty.ghost("sync")
    assert objects(empty, "nodes,resourceslices,deviceclasses") == []


def test_ctrl_c(empty):
    code, errors = end_after(empty.start("add-pool", "--count", str(NODES)), 6, signal.SIGINT)
    assert code == 130
    assert "running the same command again" in errors
    assert "Traceback" not in errors
    assert len(objects(empty, "nodes")) < NODES
    empty.ghost("add-pool", "--count", str(NODES))
    nodes, slices = shape(empty)
    assert len(nodes) == len(slices) == NODES


def test_ctrl_c_while_waiting(empty, kwok_asleep):
    process = empty.start("add-pool", "--count", "2")
    code, errors = end_after(process, 6, signal.SIGINT)
    assert code == 130
    assert "Traceback" not in errors
    assert len(objects(empty, "nodes")) == 2


def test_two_at_once_make_one_pool(empty):
    both = [empty.start("add-pool", "--count", str(NODES), "--labels", "a=b") for _ in range(2)]
    for process in both:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    nodes, slices = shape(empty)
    assert len(nodes) == len(slices) == NODES
