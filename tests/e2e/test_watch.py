"""`sync --watch` beside users and controllers that ask through the Node: it happens without a command."""

import contextlib
import json
import signal

import pytest

from tests.e2e.fleet import apply, audit_mark, deployment, objects, pod, running, settled, tool_writes
from tests.e2e.support import eventually

CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"


@contextlib.contextmanager
def watching(cluster, *flags):
    """`sync --watch` while the block runs; ended by Ctrl-C."""
    process = cluster.start("sync", "--watch", *flags)
    try:
        assert process.stderr.readline().startswith("Watching")
        yield process
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        # Shown by pytest where a test fails: what the watch did, and what it warned of.
        print(*process.communicate(timeout=30), sep="\n")


def node(cluster, name="node-0"):
    return json.loads(cluster.kubectl("get", "node", name, "-o", "json").stdout)


def mig_labels(cluster, name="node-0"):
    labels = node(cluster, name)["metadata"]["labels"]
    return labels.get(CONFIG), labels.get(STATE)


def ready(cluster, name="node-0"):
    return next(item["status"] for item in node(cluster, name)["status"]["conditions"] if item["type"] == "Ready")


def devices(cluster):
    return [device["name"] for item in objects(cluster, "resourceslices") for device in item["spec"]["devices"]]


def test_a_mig_layout_that_is_asked_for_by_label(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "2")
    with watching(empty):
        empty.kubectl("label", "node", "node-0", f"{CONFIG}=all-1g.10gb")
        eventually(lambda: mig_labels(empty) == ("all-1g.10gb", "success"))
        eventually(lambda: len(devices(empty)) == 14)
        assert node(empty)["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] == "14"
        empty.kubectl("label", "node", "node-0", f"{CONFIG}=all-9g.90gb", "--overwrite")
        eventually(lambda: mig_labels(empty) == ("all-9g.90gb", "failed"))
        assert len(devices(empty)) == 14
        empty.kubectl("label", "node", "node-0", f"{CONFIG}=all-disabled", "--overwrite")
        eventually(lambda: mig_labels(empty) == ("all-disabled", "success"))
        eventually(lambda: devices(empty) == ["gpu-0", "gpu-1"])


def test_a_layout_is_not_changed_under_a_pod(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "1", "--advertise", "device-plugin")
    apply(empty, pod("holder", gpus=1))
    running(empty, "holder")
    with watching(empty):
        empty.kubectl("label", "node", "node-0", f"{CONFIG}=all-balanced")
        eventually(lambda: mig_labels(empty) == ("all-balanced", "failed"))
    assert node(empty)["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    running(empty, "holder")


@pytest.mark.parametrize("sign", ["annotation", "condition"])
def test_a_node_that_a_remediation_tool_reboots(empty, sign):
    """The tool cordons and drains with kubectl, then says that it reboots; the machine comes back without the fault."""
    empty.ghost("add-pool", "--count", "2", "--gpus-per-node", "1", "--advertise", "device-plugin")
    apply(empty, deployment(pod("work", gpus=1), 2))
    running(empty, "work", 2)
    empty.ghost("fault", "xid", "node-0/gpu-0", "--as", "device-plugin")
    with watching(empty, "--reboot-condition", "Rebooting", "--reboot-time", "6s"):
        empty.kubectl("drain", "node-0", "--ignore-daemonsets")
        if sign == "annotation":
            empty.kubectl("annotate", "node", "node-0", "kubectl-ghost.dev/reboot=now")
        else:
            condition = {"type": "Rebooting", "status": "True", "reason": "Remediation", "message": "reboots"}
            patch = json.dumps({"status": {"conditions": [condition]}})
            empty.kubectl("patch", "node", "node-0", "--subresource=status", "-p", patch)
        eventually(lambda: ready(empty) == "False")
        eventually(lambda: ready(empty) == "True")
        assert node(empty)["spec"]["unschedulable"] is True
        eventually(lambda: node(empty)["status"]["allocatable"]["nvidia.com/gpu"] == "1")
        empty.kubectl("uncordon", "node-0")
        running(empty, "work", 2)
        # The same request is answered once.
        settled(empty)
        empty.ghost("sync")
        mark = audit_mark(empty)
        empty.ghost("sync")
        assert tool_writes(empty, mark) == []


def test_a_fault_with_a_limit_ends(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "2")
    with watching(empty):
        empty.ghost("fault", "xid", "node-0/gpu-0", "--for", "2s")
        assert node(empty)["status"]["allocatable"]["nvidia.com/gpu"] == "1"
        eventually(lambda: node(empty)["status"]["allocatable"]["nvidia.com/gpu"] == "2")
        assert not any(
            "taints" in device for item in objects(empty, "resourceslices") for device in item["spec"]["devices"]
        )


def test_at_rest_it_writes_nothing(empty):
    empty.ghost("add-pool", "--count", "3")
    settled(empty)
    with watching(empty):
        mark = audit_mark(empty)
        empty.kubectl("label", "node", "node-1", "theirs=1")
        eventually(lambda: node(empty, "node-1")["metadata"]["labels"].get("theirs") == "1")
        empty.ghost("sync")
    assert tool_writes(empty, mark) == []
