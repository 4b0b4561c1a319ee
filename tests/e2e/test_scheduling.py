"""The real scheduler on simulated GPUs: it places, it refuses with its own words, it selects by attribute."""

import json

import pytest

from tests.e2e.fleet import (
    apply,
    cel,
    claim_template,
    deployment,
    devices_of,
    objects,
    phases,
    pod,
    running,
    unschedulable,
)
from tests.e2e.support import eventually

ATTRIBUTES = "device.attributes['gpu.nvidia.com']"


def test_thirty_two_claims_run_and_the_thirty_third_waits(empty):
    empty.ghost("add-pool")
    apply(empty, claim_template("one", {}), deployment(pod("train", template="one"), 33))
    running(empty, "train", 32)
    assert "cannot allocate all claims" in unschedulable(empty, "train")
    assert phases(empty, "train").count("Pending") == 1
    held = devices_of(empty, "train")
    assert len(held) == len(set(held)) == 32

    status = json.loads(empty.ghost("status", "-o", "json").stdout)
    (pool,) = status["pools"]
    assert pool["status"] == {
        "nodes": 4,
        "readyNodes": 4,
        "gpus": 32,
        "heldGpus": 32,
        "freeGpus": 0,
        "occupiedGpus": 0,
        "faultyGpus": 0,
    }
    (workload,) = status["workloads"]
    assert (workload["workload"], workload["pods"], workload["gpus"]) == ("deployment/train", 32, 32)
    assert workload["via"] == ["claim"]
    (waiting,) = status["waiting"]
    assert "cannot allocate all claims" in waiting["reason"]

    text = empty.ghost("status").stdout
    assert "deployment/train" in text
    assert "cannot allocate all claims" in text


def test_the_same_by_nvidia_gpu(empty):
    empty.ghost("add-pool", "classic", "--gpu", "a100", "--advertise", "device-plugin")
    apply(empty, deployment(pod("old", gpus=1), 33))
    running(empty, "old", 32)
    assert "Insufficient nvidia.com/gpu" in unschedulable(empty, "old")
    status = json.loads(empty.ghost("status", "-o", "json").stdout)
    assert status["pools"][0]["status"]["heldGpus"] == 32
    assert status["workloads"][0]["via"] == ["nvidia.com/gpu"]
    assert objects(empty, "resourceslices") == []


def test_get_gpus_names_the_holder_that_the_claim_names(empty):
    empty.ghost("add-pool", "--count", "2")
    apply(empty, claim_template("two", {"count": 2}), pod("pair", template="two"))
    running(empty, "pair")
    shown = {
        item["metadata"]["name"]
        for item in json.loads(empty.ghost("get", "gpus", "-o", "json").stdout)["items"]
        if item["status"]["holders"]
    }
    assert shown == {f"{node}/{device}" for node, device in devices_of(empty, "pair")}
    assert len(shown) == 2


@pytest.mark.parametrize(
    ("expression", "pool"),
    [
        (f"{ATTRIBUTES}.productName == 'NVIDIA A100-SXM4-80GB'", "a100"),
        (f"{ATTRIBUTES}.productName.lowerAscii().matches('^.*h100.*$')", "h100"),
        (f"{ATTRIBUTES}.architecture == 'Ampere'", "a100"),
        (f"{ATTRIBUTES}.cudaComputeCapability.compareTo(semver('9.0.0')) >= 0", "h100"),
        (f"{ATTRIBUTES}.cudaComputeCapability.isLessThan(semver('8.0.0'))", "t4"),
        (f"{ATTRIBUTES}.driverVersion.isGreaterThan(semver('550.0.0')) && {ATTRIBUTES}.architecture == 'Turing'", "t4"),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0", "a100"),
        (
            "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('70Gi')) && "
            "device.capacity['gpu.nvidia.com'].memory.isLessThan(quantity('80Gi'))",
            "h100",
        ),
    ],
)
def test_expressions_that_people_use_select_the_right_boards(empty, expression, pool):
    for name in ("a100", "h100", "t4"):
        empty.ghost("add-pool", name, "--gpu", name, "--count", "1")
    apply(empty, claim_template("chosen", cel(expression)), pod("choosy", template="chosen"))
    running(empty, "choosy")
    ((node, _),) = devices_of(empty, "choosy")
    assert node == f"{pool}-0"


def test_an_expression_that_nothing_satisfies_waits(empty):
    empty.ghost("add-pool", "--count", "1")
    apply(empty, claim_template("none", cel(f"{ATTRIBUTES}.architecture == 'Rubin'")), pod("hopeful", template="none"))
    assert "cannot allocate all claims" in unschedulable(empty, "hopeful")


def test_no_mig_device_is_offered(empty):
    empty.ghost("add-pool", "--count", "1")
    apply(empty, claim_template("mig", {"deviceClassName": "mig.nvidia.com"}), pod("slice", template="mig"))
    assert "cannot allocate all claims" in unschedulable(empty, "slice")


def test_match_attribute_keeps_gpus_on_one_pcie_root(empty):
    empty.ghost("add-pool", "--count", "1")
    same_root = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
    apply(
        empty,
        claim_template("four", {"count": 4}, constraints=same_root),
        claim_template("five", {"count": 5}, constraints=same_root),
        pod("five", template="five"),
    )
    assert "cannot allocate all claims" in unschedulable(empty, "five")
    apply(empty, pod("four", template="four"))
    running(empty, "four")
    devices = {device for _, device in devices_of(empty, "four")}
    assert devices in ({f"gpu-{index}" for index in range(4)}, {f"gpu-{index}" for index in range(4, 8)})


def test_nvidia_gpu_is_served_through_dra_in_a_dra_pool(empty):
    empty.ghost("add-pool", "dra", "--advertise", "dra", "--count", "1", "--gpus-per-node", "2")
    (node,) = objects(empty, "nodes")
    assert "nvidia.com/gpu" not in node["status"]["capacity"]
    apply(empty, deployment(pod("legacy", gpus=1), 3))
    running(empty, "legacy", 2)
    assert unschedulable(empty, "legacy")
    assert devices_of(empty, "legacy") == [("dra-0", "gpu-0"), ("dra-0", "gpu-1")]
    shown = empty.ghost("get", "gpus", "-o", "custom-columns=POD:.status.holders[*].pod", "--no-headers").stdout.split()
    assert len(shown) == 2
    assert all(name.startswith("legacy-") for name in shown)


def test_a_gpu_handed_out_both_ways_is_shown(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "1")
    apply(empty, claim_template("one", {}), pod("by-claim", template="one"), pod("by-name", gpus=1))
    running(empty, "by-claim")
    running(empty, "by-name")
    done = empty.ghost("status")
    assert "1 GPU(s) handed out twice" in done.stderr
    assert json.loads(empty.ghost("status", "-o", "json").stdout)["doubledGpus"] == ["node-0/gpu-0"]


def test_a_shared_claim_shows_both_pods(empty):
    empty.ghost("add-pool", "--count", "1")
    shared = claim_template("shared", {})
    shared["kind"], shared["spec"] = "ResourceClaim", shared["spec"]["spec"]
    pods = [pod("first", template="x"), pod("second", template="x")]
    for item in pods:
        item["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    apply(empty, shared, *pods)
    running(empty, "first")
    running(empty, "second")
    holders = empty.ghost("get", "gpus", "-o", "jsonpath={.items[*].status.holders[*].pod}").stdout.split()
    assert sorted(holders) == ["first", "second"]
    empty.kubectl("delete", "resourceclaim", "shared", "--wait=false")


def test_sync_writes_down_which_gpu_a_pod_has_and_it_stays(empty):
    empty.ghost("add-pool", "c", "--advertise", "device-plugin", "--count", "1", "--gpus-per-node", "2")
    apply(empty, pod("a", gpus=1))
    running(empty, "a")
    apply(empty, pod("b", gpus=1))
    running(empty, "b")
    assert "pod/b annotated" in empty.ghost("sync").stdout
    recorded = {
        item["metadata"]["name"]: item["metadata"]["annotations"]["kubectl-ghost.dev/gpus"]
        for item in objects(empty, "pods")
    }
    assert sorted(recorded.values()) == ["gpu-0", "gpu-1"]
    empty.kubectl("delete", "pod", "a", "--force", "--wait=true")
    eventually(lambda: "default/b" in empty.ghost("get", "gpus", f"c-0/{recorded['b']}").stdout)
    assert {line.rsplit(" ", 1)[1] for line in empty.ghost("sync").stdout.splitlines()} == {"unchanged"}
