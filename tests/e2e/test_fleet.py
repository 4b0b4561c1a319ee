"""Pools on a real API server: every model is accepted, changes are exact, and at rest nothing is written."""

import json
import re

import pytest

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.hardware import Advertise, NodeHardware
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.manifests.resource_slice import resource_slices
from tests.e2e.fleet import apply, claim_template, objects, pod, running, settled, versions
from tests.e2e.support import eventually

CONFIGURED = re.compile(r"^\S+ (created|configured|deleted)$", re.MULTILINE)


@pytest.mark.parametrize("key", model_keys())
def test_the_api_server_takes_every_model_as_it_is(empty, key):
    name = key.replace("-", "")[:20]
    empty.ghost("add-pool", name, "--gpu", key, "--count", "1")
    (stored,) = objects(empty, "resourceslices")
    (node,) = objects(empty, "nodes")
    (wanted,) = resource_slices(NodeHardware(configure(name, None, PoolRequest(model=key)), 0), node)
    assert stored["spec"] == wanted["spec"]
    assert empty.ghost("add-pool", name, "--gpu", key, "--count", "1").stdout.count("unchanged") == 4


def test_the_largest_node(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "128")
    (stored,) = objects(empty, "resourceslices")
    assert len(stored["spec"]["devices"]) == 128


def test_no_argument_at_all(empty):
    done = empty.ghost("add-pool")
    assert done.stdout.count("created") == 10
    assert re.search(r'^Writing to context "\S+" at https://127\.0\.0\.1:\d+$', done.stderr, re.MULTILINE)
    settled(empty)
    nodes = {node["metadata"]["name"]: node for node in objects(empty, "nodes")}
    assert list(nodes) == ["node-0", "node-1", "node-2", "node-3"]
    for node in nodes.values():
        assert node["status"]["phase"] == "Running"
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        assert "taints" not in node["spec"]
    assert empty.ghost("get", "nodes", "--no-headers").stdout.count(" Ready ") == 4


def test_at_rest_nothing_is_written(empty):
    empty.ghost("add-pool")
    empty.ghost("add-pool", "classic", "--advertise", "device-plugin", "--zones", "a,b", "--taints", "k=v:NoExecute")
    settled(empty)
    before = versions(empty)
    for command in (
        ["add-pool"],
        ["add-pool", "classic", "--advertise", "device-plugin", "--zones", "a,b", "--taints", "k=v:NoExecute"],
        ["scale-pool", "node", "4"],
        ["sync"],
    ):
        done = empty.ghost(*command)
        assert not CONFIGURED.search(done.stdout), command
        assert set(re.findall(r" (\w+)$", done.stdout, re.MULTILINE)) == {"unchanged"}
    for command in (["status"], ["get", "pools"], ["get", "nodes"], ["get", "gpus"]):
        empty.ghost(*command)
    assert versions(empty) == before


def test_a_dry_run_writes_nothing(empty):
    empty.ghost("add-pool", "--count", "2")
    settled(empty)
    before = versions(empty)
    for mode in ("client", "server"):
        done = empty.ghost("add-pool", "other", f"--dry-run={mode}")
        assert done.stdout.count("created") == 8
        assert ("(dry run)" if mode == "client" else "(server dry run)") in done.stdout
        assert "configured" in empty.ghost("add-pool", "--gpu", "t4", f"--dry-run={mode}").stdout
        assert "deleted" in empty.ghost("delete-pool", "--all", f"--dry-run={mode}").stdout
        assert "created" in empty.ghost("scale-pool", "node", "5", f"--dry-run={mode}").stdout
    assert versions(empty) == before


def test_reconfiguring_changes_what_was_asked_and_leaves_what_others_added(empty):
    empty.ghost("add-pool", "--count", "2", "--labels", "team=a,keep=1")
    empty.kubectl("label", "node", "node-0", "theirs=1", "nvidia.com/gpu.count=3", "--overwrite")
    empty.kubectl("taint", "node", "node-0", "theirs=1:NoSchedule")
    empty.ghost("add-pool", "--gpu", "gb200", "--labels", "team=b", "--zones", "z", "--taints", "mine=1:NoSchedule")
    node = objects(empty, "nodes")[0]
    labels = node["metadata"]["labels"]
    assert labels["team"] == "b"
    assert "keep" not in labels
    assert labels["theirs"] == "1"
    assert labels["nvidia.com/gpu.count"] == "4"
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-GB200"
    assert {taint["key"] for taint in node["spec"]["taints"]} == {"theirs", "mine"}
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "4"
    assert node["status"]["capacity"]["cpu"] == "144"
    slices = objects(empty, "resourceslices")
    assert [len(item["spec"]["devices"]) for item in slices] == [4, 4]
    assert [item["spec"]["pool"]["generation"] for item in slices] == [1, 1]
    empty.ghost("add-pool", "--advertise", "device-plugin")
    assert objects(empty, "resourceslices") == []
    assert objects(empty, "deviceclasses") == []
    empty.ghost("add-pool", "--advertise", "dra")
    assert all("nvidia.com/gpu" not in node["status"]["capacity"] for node in objects(empty, "nodes"))
    assert len(objects(empty, "resourceslices")) == 2


def test_add_pool_never_shrinks(empty):
    empty.ghost("add-pool", "--count", "3")
    done = empty.ghost("add-pool", "--count", "2")
    assert "never shrinks a pool; use: kubectl ghost scale-pool node 2" in done.stderr
    assert len(objects(empty, "nodes")) == 3


def test_scaling(empty):
    empty.ghost("add-pool", "--count", "2", "--gpu", "l40s")
    assert empty.ghost("scale-pool", "node", "4").stdout.count("created") == 4
    apply(empty, pod("bare", nodeName="node-3"), pod("kept", nodeName="node-0"))
    running(empty, "bare")
    running(empty, "kept")
    done = empty.ghost("scale-pool", "node", "--replicas=1")
    assert 'pod "bare" deleted from default namespace' in done.stdout
    assert [node["metadata"]["name"] for node in objects(empty, "nodes")] == ["node-0"]
    assert [item["metadata"]["name"] for item in objects(empty, "pods")] == ["kept"]
    assert len(objects(empty, "resourceslices")) == 1


def test_deleting_takes_pods_slices_and_classes(empty):
    empty.ghost("add-pool", "a", "--count", "2")
    empty.ghost("add-pool", "b", "--count", "1")
    apply(empty, claim_template("one", {}), pod("on-a", template="one", nodeSelector={"kubectl-ghost.dev/pool": "a"}))
    running(empty, "on-a")
    done = empty.ghost("delete-pool", "a")
    assert 'node "a-1" deleted' in done.stdout
    assert objects(empty, "pods") == []
    assert [node["metadata"]["name"] for node in objects(empty, "nodes")] == ["b-0"]
    assert len(objects(empty, "resourceslices")) == 1
    assert len(objects(empty, "deviceclasses")) == 2
    empty.ghost("delete-pool", "--all")
    assert objects(empty, "nodes,resourceslices,deviceclasses") == []
    assert empty.ghost("delete-pool", "a", check=False).returncode == 1
    assert empty.ghost("delete-pool", "a", "--ignore-not-found").returncode == 0
    assert empty.ghost("delete-pool", "--all").stderr == "No resources found\n"


def test_a_daemonset_leaves_no_pod_behind(empty):
    empty.ghost("add-pool", "--count", "3")
    template = pod("agent")
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": template["spec"]},
        },
    }
    apply(empty, daemons)
    running(empty, "agent", 3)
    empty.ghost("delete-pool", "node")
    eventually(lambda: objects(empty, "pods") == [])
    assert objects(empty, "nodes") == []
    (left,) = objects(empty, "daemonsets")
    assert left["metadata"]["name"] == "agent"


def test_a_node_that_something_holds_is_waited_for_and_named(empty):
    empty.ghost("add-pool", "--count", "1")
    empty.kubectl("patch", "node", "node-0", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    done = empty.ghost("delete-pool", "node", "--timeout", "1s", check=False)
    assert done.returncode == 1
    assert 'node "node-0" is marked for deletion and still there; finalizers: example.com/hold' in done.stderr
    empty.kubectl("patch", "node", "node-0", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def test_a_node_that_is_declared_down_is_not_waited_for(empty):
    empty.ghost("add-pool", "--count", "2")
    empty.kubectl("annotate", "node", "node-1", "kubectl-ghost.dev/node-down=maintenance")
    eventually(lambda: "NotReady" in empty.ghost("get", "nodes", "node-1").stdout)
    assert empty.ghost("add-pool", "--count", "3").returncode == 0


def test_one_damaged_declaration_stands_in_nobodys_way(empty):
    empty.ghost("add-pool", "--count", "1")
    empty.ghost("add-pool", "other", "--count", "1")
    empty.kubectl("annotate", "node", "node-0", "kubectl-ghost.dev/hardware=nonsense", "--overwrite")
    done = empty.ghost("status")
    assert 'the hardware annotation of node "node-0" cannot be read' in done.stderr
    assert "other" in done.stdout
    empty.ghost("add-pool", "other", "--count", "2")
    done = empty.ghost("sync", check=False)
    assert done.returncode == 1
    assert "node/other-1 unchanged" in done.stdout
    empty.ghost("delete-pool", "node")
    assert [node["metadata"]["name"] for node in objects(empty, "nodes")] == ["other-0", "other-1"]


def test_listings_sort_and_show_labels(empty):
    empty.ghost("add-pool", "--count", "3", "--racks", "r2,r1", "--zones", "z")
    names = ["get", "nodes", "--sort-by=.metadata.labels.kubectl-ghost\\.dev/rack", "-o", "name"]
    assert empty.ghost(*names).stdout.split() == ["node/node-1", "node/node-0", "node/node-2"]
    shown = empty.ghost("get", "nodes", "-L", "kubectl-ghost.dev/rack", "--no-headers=true").stdout
    assert [line.split()[-1] for line in shown.splitlines()] == ["r2", "r1", "r2"]
    assert "topology.kubernetes.io/zone=z" in empty.ghost("get", "nodes", "--show-labels").stdout
    one = empty.ghost("status", "--node", "node-1").stdout
    assert one.count("node-1/gpu-") == 8
    assert "node-0" not in one


def test_gpus_in_use_are_not_taken_away_unless_forced(empty):
    empty.ghost("add-pool", "--count", "1")
    apply(empty, claim_template("eight", {"count": 8}), pod("all", template="eight"))
    running(empty, "all")
    settled(empty)
    before = versions(empty)
    for flags in (["--gpus-per-node", "4"], ["--gpu", "t4"], ["--advertise", "device-plugin"]):
        done = empty.ghost("add-pool", *flags, check=False)
        assert done.returncode == 1
        assert "1 pod(s) hold GPUs that would be gone: default/all" in done.stderr
    assert versions(empty) == before
    done = empty.ghost("add-pool", "--gpus-per-node", "4", "--force")
    assert 'pod "all" deleted' in done.stdout
    eventually(lambda: not empty.kubectl("get", "resourceclaims", "-o", "name").stdout)
    assert len(objects(empty, "resourceslices")[0]["spec"]["devices"]) == 4


def test_sync_repairs_and_sweeps(empty):
    empty.ghost("add-pool", "--count", "2")
    settled(empty)
    wanted = objects(empty, "resourceslices")[0]["spec"]
    empty.kubectl("label", "node", "node-0", "nvidia.com/gpu.product-")
    empty.kubectl("delete", "resourceslice", objects(empty, "resourceslices")[0]["metadata"]["name"])
    patch = json.dumps({"spec": {"devices": []}})
    empty.kubectl(
        "patch", "resourceslice", objects(empty, "resourceslices")[0]["metadata"]["name"], "-p", patch, "--type=merge"
    )
    done = empty.ghost("sync")
    assert "node/node-0 configured" in done.stdout
    assert done.stdout.count("resourceslice") == 2
    assert objects(empty, "resourceslices")[0]["spec"] == wanted
    assert "configured" not in empty.ghost("sync").stdout


def test_output_formats(empty):
    made = json.loads(empty.ghost("add-pool", "--count", "2", "-o", "json").stdout)
    assert [item["kind"] for item in made["items"]] == ["DeviceClass"] * 2 + ["Node", "ResourceSlice"] * 2
    assert empty.ghost("add-pool", "-o", "name").stdout.split()[2] == "node/node-0"
    theirs = empty.kubectl("get", "nodes", "-o", "yaml").stdout
    ours = empty.ghost("get", "nodes", "-o", "yaml").stdout
    assert ours == theirs
    assert empty.ghost("get", "nodes", "-o", "json").stdout == empty.kubectl("get", "nodes", "-o", "json").stdout
    template = "jsonpath={range .items[*]}{.metadata.name}={.status.capacity.nvidia\\.com/gpu}{'\\n'}{end}"
    assert empty.ghost("get", "nodes", "-o", template).stdout == "node-0=8\nnode-1=8\n"
    assert empty.ghost("get", "nodes", "node-1", "-o", "name").stdout == "node/node-1\n"
    wide = empty.ghost("get", "gpus", "node-1/gpu-7", "-o", "wide", "--no-headers").stdout.split()
    assert wide[:2] == ["node-1/gpu-7", "node"]
    missing = empty.ghost("get", "nodes", "node-0", "nope", check=False)
    assert missing.returncode == 1
    assert 'nodes "nope" not found' in missing.stderr
    assert "node-0" in missing.stdout
    assert empty.ghost("get", "pools", "-l", "a=b").stderr == "No resources found\n"


def test_watching_shows_what_changes(empty):
    empty.ghost("add-pool", "--count", "1")
    watching = empty.start("get", "nodes", "-w")
    try:
        assert "NAME" in watching.stdout.readline()
        assert "node-0" in watching.stdout.readline()
        empty.kubectl("cordon", "node-0")
        assert "Ready,SchedulingDisabled" in watching.stdout.readline()
        empty.kubectl("delete", "node", "node-0")
        assert "node-0" in watching.stdout.readline()
        assert watching.poll() is None
    finally:
        watching.terminate()
        watching.communicate()


def test_both_beside_dra_is_refused(empty):
    empty.ghost("add-pool", "a", "--advertise", "dra", "--count", "1")
    done = empty.ghost("add-pool", "b", check=False)
    assert done.returncode == 1
    assert "nvidia.com/gpu would be served two ways" in done.stderr
    assert Advertise.DEVICE_PLUGIN.value in done.stderr
    empty.ghost("add-pool", "b", "--advertise", "device-plugin", "--count", "1")


def test_the_class_serves_nvidia_gpu_only_while_dra_pools_exist(empty):
    def extended():
        (found,) = [item for item in objects(empty, "deviceclasses") if item["metadata"]["name"] == "gpu.nvidia.com"]
        return found["spec"].get("extendedResourceName")

    empty.ghost("add-pool", "a", "--count", "1")
    assert extended() is None
    empty.ghost("add-pool", "a", "--advertise", "dra")
    assert extended() == "nvidia.com/gpu"
    empty.ghost("add-pool", "a", "--advertise", "both")
    assert extended() is None
