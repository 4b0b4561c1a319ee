"""Commands at once, killed and at rest, on a real API server: no update is lost, and what is declared comes about."""

import signal

import pytest

from tests.e2e.fleet import audit_mark, objects, settled, tool_writes, versions
from tests.e2e.test_interruption import end_after

ROUNDS = 100


def at_once(cluster, *commands):
    """Run commands at the same time; all must succeed."""
    processes = [cluster.start(*command.split()) for command in commands]
    for process in processes:
        output, errors = process.communicate()
        assert process.returncode == 0, output + errors


def taints(cluster):
    """(node, device, key) of every taint that is published."""
    return {
        (item["spec"]["nodeName"], device["name"], taint["key"])
        for item in objects(cluster, "resourceslices")
        for device in item["spec"].get("devices") or ()
        for taint in device.get("taints") or ()
    }


def allocatable(cluster, name="node-0"):
    (node,) = [item for item in objects(cluster, "nodes") if item["metadata"]["name"] == name]
    return node["status"]["allocatable"]["nvidia.com/gpu"]


def test_two_commands_at_once_on_one_node_a_hundred_times(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "4")
    both = {("node-0", "gpu-0", "gpu.nvidia.com/xid"), ("node-0", "gpu-1", "kubectl-ghost.dev/occupied")}
    for number in range(ROUNDS // 2):
        at_once(empty, "fault xid node-0/gpu-0 --as dra,device-plugin", "occupy node-0/gpu-1")
        assert taints(empty) == both, number
        assert allocatable(empty) == "2"
        at_once(empty, "fault clear node-0/gpu-0", "release node-0/gpu-1")
        assert taints(empty) == set(), number
        assert allocatable(empty) == "4"


def filler_pods(cluster):
    """The name of every filler pod, with the phase it is in."""
    return {
        item["metadata"]["name"]: item["status"]["phase"]
        for item in objects(cluster, "pods", "-n", "kubectl-ghost-occupancy")
    }


def test_two_gpus_of_one_node_are_kept_busy_by_pods_at_once_and_released_at_once(empty):
    """Neither command takes the other's pod for one that nobody has declared."""
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "4")
    for number in range(10):
        at_once(empty, "occupy node-0/gpu-0 --with pods", "occupy node-0/gpu-1 --with pods")
        assert filler_pods(empty) == {"node-0-gpu-0": "Running", "node-0-gpu-1": "Running"}, number
        at_once(empty, "release node-0/gpu-0", "release node-0/gpu-1")
        assert filler_pods(empty) == {}, number
    mark = audit_mark(empty)
    empty.ghost("sync")
    assert tool_writes(empty, mark) == []


def test_at_rest_nothing_is_written_to_300_nodes_with_faults_and_occupancy(empty):
    """The server dates every taint; a tool that took that for a difference would write for ever."""
    empty.ghost("add-pool", "--count", "300")
    empty.ghost("occupy", "--pool", "node", "--utilization", "50%", "--seed", "3")
    empty.ghost("fault", "xid", "--pool", "node", "--random", "200", "--seed", "5")
    empty.ghost("fault", "thermal", "--pool", "node", "--random", "20", "--as", "eks-node-monitoring,dra")
    empty.ghost("mig-split", "node-7/gpu-0", "--profiles", "3g.40gb,1g.10gb*4", "--force")
    assert len(taints(empty)) > 1300
    settled(empty)
    before, mark = versions(empty), audit_mark(empty)
    for _ in range(2):
        done = empty.ghost("sync")
        assert {line.rsplit(" ", 1)[1] for line in done.stdout.splitlines()} == {"unchanged"}
    assert tool_writes(empty, mark) == []
    assert versions(empty) == before


COMMANDS = {
    "mig-split": ["mig-split", "--pool", "node", "--profiles", "3g.40gb,2g.20gb,1g.10gb*2"],
    "occupy": ["occupy", "--pool", "node", "--utilization", "60%"],
    "fault": ["fault", "xid", "--pool", "node", "--random", "100", "--code", "48"],
    "drain": ["drain", "-l", "kubectl-ghost.dev/pool=node", "--reboot", "--reboot-time", "1s"],
}


def published(cluster):
    """What follows from the declarations, without what counts interruptions or tells the time."""
    nodes = {
        item["metadata"]["name"]: (
            item["metadata"]["annotations"].get("kubectl-ghost.dev/node-down"),
            {key: value for key, value in item["metadata"]["labels"].items() if key.startswith("nvidia.com/")},
            {key: value for key, value in item["status"]["allocatable"].items() if key.startswith("nvidia.com/")},
        )
        for item in objects(cluster, "nodes")
    }
    return (
        nodes,
        taints(cluster),
        sorted(
            (item["spec"]["nodeName"], device["name"])
            for item in objects(cluster, "resourceslices")
            for device in item["spec"]["devices"]
        ),
    )


@pytest.mark.parametrize("lines", [1, 12])
@pytest.mark.parametrize("name", COMMANDS)
def test_kill_9_then_sync_then_the_same_command(empty, name, lines):
    """After the kill `sync` makes every node what it was declared to be, and the command finishes the rest."""
    empty.ghost("add-pool", "--count", "30", "--gpus-per-node", "4")
    end_after(empty.start(*COMMANDS[name]), lines, signal.SIGKILL)
    empty.ghost("sync")
    mark = audit_mark(empty)
    if name != "drain":
        # Nothing is left to do for what had been declared; a reboot ends when its time has come.
        assert "configured" not in empty.ghost("sync").stdout
        assert tool_writes(empty, mark) == []
    empty.ghost(*COMMANDS[name])
    interrupted = published(empty)
    empty.ghost("delete-pool", "--all")
    empty.ghost("add-pool", "--count", "30", "--gpus-per-node", "4")
    empty.ghost(*COMMANDS[name])
    assert published(empty) == interrupted
