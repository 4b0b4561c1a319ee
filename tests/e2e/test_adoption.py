"""GPUs on kwok nodes that an autoscaler creates: the scheduler uses them; in the end they are as they were."""

import json
import time

from tests.e2e.fleet import (
    apply,
    audit_mark,
    claim_template,
    devices_of,
    objects,
    phases,
    pod,
    running,
    settled,
    tool_writes,
    unschedulable,
)
from tests.e2e.support import eventually
from tests.e2e.test_watch import watching

SELECTOR = {"autoscaler": "x"}
MACHINE = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
TEMPLATE = ("--template", "gpu", "-l", "autoscaler=x")


def worker(name, *, labels=None, annotations=None, **parts):
    """A node as an autoscaler with kwok creates it: kwok's annotation, a label of the group, no status."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**SELECTOR, **MACHINE, "kubernetes.io/hostname": name, **(labels or {})},
            "annotations": {"kwok.x-k8s.io/node": "fake", **(annotations or {})},
        },
        **parts,
    }


def real(name):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": SELECTOR}}


def node(cluster, name):
    return json.loads(cluster.kubectl("get", "node", name, "-o", "json").stdout)


def slices_on(cluster, name):
    return [item for item in objects(cluster, "resourceslices") if item["spec"].get("nodeName") == name]


def capacity(cluster, name):
    return node(cluster, name)["status"].get("capacity", {})


def has_gpus(cluster, name):
    return capacity(cluster, name).get("nvidia.com/gpu") == "2" and bool(slices_on(cluster, name))


def what_owners_see(cluster, *names):
    """All of a node but versions, times and what kwok and the node controllers keep writing."""
    found = {}
    for name in names:
        item = node(cluster, name)
        conditions = [
            {key: value for key, value in condition.items() if not key.endswith("Time")}
            for condition in item["status"]["conditions"]
        ]
        found[name] = {
            "labels": item["metadata"]["labels"],
            "annotations": item["metadata"]["annotations"],
            "uid": item["metadata"]["uid"],
            "spec": item["spec"],
            "status": {**item["status"], "conditions": conditions},
        }
    return found


def test_nodes_that_an_autoscaler_creates_get_gpus_while_sync_watches(empty):
    empty.ghost("add-pool", "gpu", "--count", "1", "--gpus-per-node", "2")
    apply(
        empty,
        claim_template("one", {}),
        pod("by-claim", template="one", nodeSelector=SELECTOR),
        pod("by-count", gpus=2, nodeSelector=SELECTOR),
        real("real-0"),
    )
    unschedulable(empty, "by-claim")
    unschedulable(empty, "by-count")
    since = audit_mark(empty)
    with watching(empty, *TEMPLATE):
        apply(empty, worker("worker-a"), worker("worker-b"))
        eventually(lambda: has_gpus(empty, "worker-a") and has_gpus(empty, "worker-b"))
        # kwok's own figures are there: the GPUs did not come before them.
        assert set(capacity(empty, "worker-a")) == {"cpu", "memory", "pods", "nvidia.com/gpu"}
        running(empty, "by-claim")
        running(empty, "by-count")
        ((holder, device),) = devices_of(empty, "by-claim")
        assert holder in ("worker-a", "worker-b")
        shown = empty.ghost("get", "gpus", f"{holder}/{device}", "--no-headers").stdout
        assert shown.split()[1] == "gpu"
        assert "default/by-claim" in shown
        assert empty.ghost("get", "pools", "--no-headers").stdout.split()[2] == "3"

        empty.ghost("fault", "xid", holder, device, "--code", "79")
        eventually(lambda: phases(empty, "by-claim") == [])
        allocatable = node(empty, holder)["status"]["allocatable"]["nvidia.com/gpu"]
        assert allocatable == "1"
        assert f"{holder}/{device}" in empty.ghost("fault", "list", "--pool", "gpu").stdout

        # The autoscaler takes a node away: the garbage collector takes the slices, and nobody makes either again.
        empty.kubectl("delete", "node", holder)
        eventually(lambda: not slices_on(empty, holder))
        empty.ghost("sync")
        assert holder not in [item["metadata"]["name"] for item in objects(empty, "nodes")]
        assert not slices_on(empty, holder)

        # While the pool goes, nobody adopts anew what is given back.
        (left,) = {"worker-a", "worker-b"} - {holder}
        assert f"node/{left} released" in empty.ghost("delete-pool", "gpu").stdout
        empty.kubectl("label", "node", left, "touched=yes")
        time.sleep(2)
        assert set(capacity(empty, left)) == {"cpu", "memory", "pods"}
        assert "kubectl-ghost.dev/hardware" not in node(empty, left)["metadata"]["annotations"]
    written = [event["objectRef"].get("name") for event in tool_writes(empty, since)]
    assert "worker-a" in written
    assert "real-0" not in written
    assert "nvidia.com/gpu" not in capacity(empty, "real-0")


def test_they_are_given_back_exactly_as_they_were(empty):
    empty.ghost("add-pool", "gpu", "--count", "2", "--gpus-per-node", "2")
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    theirs = {"nvidia.com/gpu": "1", "nvidia.com/odd": "3"}
    names = ("worker-a", "worker-b", "gpu-9")
    apply(
        empty,
        worker("worker-a"),
        worker(
            "worker-b",
            labels={"nvidia.com/gpu.product": "theirs", "app.kubernetes.io/managed-by": "autoscaler"},
            annotations={"theirs": "x"},
            spec={"taints": [{"key": "theirs", "effect": "NoSchedule"}]},
            status={"capacity": {**room, **theirs}, "allocatable": {**room, **theirs}},
        ),
        worker("gpu-9"),
    )
    settled(empty)
    # kubectl apply does not write the status of a Node through the main resource on every version: by itself, too.
    patch = json.dumps({"status": {"capacity": {**room, **theirs}, "allocatable": {**room, **theirs}}})
    empty.kubectl("patch", "node", "worker-b", "--subresource=status", "--type=merge", "-p", patch)
    before = what_owners_see(empty, *names)
    done = empty.ghost("sync", *TEMPLATE).stdout
    assert {f"node/{name} adopted" for name in names} <= set(done.splitlines())
    assert all(has_gpus(empty, name) for name in names)
    assert node(empty, "worker-b")["spec"] == before["worker-b"]["spec"]
    again = empty.ghost("sync", *TEMPLATE).stdout
    assert all(line.endswith(" unchanged") for line in again.splitlines())

    apply(
        empty,
        claim_template("one", {}),
        pod("holder", template="one", nodeSelector={"kubernetes.io/hostname": "worker-a"}),
        pod("plain", nodeName="worker-a"),
    )
    running(empty, "holder")
    running(empty, "plain")
    empty.ghost(
        "fault", "xid", "worker-b", "gpu-1", "--code", "79", "--as", "eks-node-monitoring,nvsentinel,device-plugin"
    )
    assert node(empty, "worker-b")["spec"].get("unschedulable")
    empty.kubectl("label", "node", "gpu-9", "nvidia.com/mig.config=all-1g.10gb")
    empty.ghost("sync")
    assert capacity(empty, "gpu-9")["nvidia.com/mig-1g.10gb"] == "14"
    assert what_owners_see(empty, *names) != before

    done = empty.ghost("delete-pool", "gpu").stdout
    assert {f"node/{name} released" for name in names} <= set(done.splitlines())
    after = what_owners_see(empty, *names)
    # The label was asked for by a user, and its answer with it has gone.
    assert after["gpu-9"]["labels"].pop("nvidia.com/mig.config", None) is None
    assert after == before
    assert sorted(item["metadata"]["name"] for item in objects(empty, "nodes")) == sorted(names)
    assert objects(empty, "resourceslices") == objects(empty, "deviceclasses") == []
    assert [item["metadata"]["name"] for item in objects(empty, "pods")] == ["plain"]


def test_the_two_flags_go_together_and_the_pool_must_be_there(empty):
    apply(empty, worker("worker-a"))
    settled(empty)
    empty.ghost("add-pool", "gpu", "--count", "1")
    since = audit_mark(empty)
    for flags, message in (
        (["--template", "gpu"], "--template and --selector go together"),
        (["-l", "autoscaler=x"], "--template and --selector go together"),
        (["--template", "gpu", "-l", ""], "--template and --selector go together"),
        (["--template", "nodes", "-l", "autoscaler=x"], 'pool "nodes" not found'),
        (["--template", "gpu", "-l", "((("], "found '('"),
    ):
        refused = empty.ghost("sync", *flags, check=False)
        assert refused.returncode != 0
        assert message in refused.stderr
        assert refused.stdout == ""
    assert tool_writes(empty, since) == []
