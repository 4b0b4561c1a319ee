"""Faults on the real scheduler and controllers: who goes, where they come back, and what the cluster says."""

import json

import pytest

from kubectl_ghost.domain.fault_catalogue import explain
from tests.e2e.fleet import (
    apply,
    claim_template,
    deployment,
    devices_of,
    objects,
    phases,
    pod,
    running,
    settled,
    unschedulable,
    versions,
)
from tests.e2e.support import eventually

ONE = claim_template("one", {})


def one(cluster, kind, name):
    return json.loads(cluster.kubectl("get", kind, name, "-o", "json").stdout)


def taints(cluster, node):
    """The device taints of a node, as stored: device -> key=value:effect."""
    return {
        device["name"]: [f"{taint['key']}={taint.get('value', '')}:{taint['effect']}" for taint in device["taints"]]
        for item in objects(cluster, "resourceslices")
        for device in item["spec"].get("devices", ())
        if item["spec"].get("nodeName") == node and device.get("taints")
    }


def allocatable(cluster, node):
    return one(cluster, "node", node)["status"]["allocatable"].get("nvidia.com/gpu")


WELL = {"AcceleratedHardwareReady": "True", "XIDErrors": "False", "SysLogsXIDError": "False"}
KUBELETS = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def conditions(cluster, node):
    return {item["type"]: item for item in one(cluster, "node", node)["status"]["conditions"]}


def node_taints(cluster, node):
    return {f"{taint['key']}:{taint['effect']}" for taint in one(cluster, "node", node)["spec"].get("taints", ())}


def names(cluster, app):
    return {item["metadata"]["name"] for item in objects(cluster, "pods", "-l", f"app={app}")}


def events(cluster, kind, name):
    found = objects(cluster, "events", "-A")
    about = [item for item in found if (item["involvedObject"]["kind"], item["involvedObject"]["name"]) == (kind, name)]
    return {item["reason"]: item for item in about}


def held_by(cluster, *apps):
    """(node, device) of the one device that each application's claim was given."""
    return {app: devices_of(cluster, app)[0] for app in apps}


def test_a_gpu_fails_under_a_running_job(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "2")
    apply(empty, ONE, deployment(pod("train", template="one"), 1))
    running(empty, "train")
    (old_pod,), (old_device,) = names(empty, "train"), devices_of(empty, "train")
    (old_claim,) = objects(empty, "resourceclaims")
    done = empty.ghost("fault", "xid", *old_device)
    assert done.stderr == "XID 79 on 1 GPU of 1 node\n"
    assert old_pod not in names(empty, "train")
    running(empty, "train")
    (new_device,) = devices_of(empty, "train")
    assert new_device[0] == old_device[0]
    assert new_device[1] != old_device[1]
    assert "DeviceTaintManagerEviction" in events(empty, "Pod", old_pod)
    eventually(lambda: old_claim["metadata"]["name"] not in str(objects(empty, "resourceclaims")))
    assert taints(empty, "node-0") == {old_device[1]: ["gpu.nvidia.com/xid=79:NoExecute"]}
    assert allocatable(empty, "node-0") == "1"
    assert events(empty, "Node", "node-0")["XID79"]["message"].startswith(f"{old_device[1]}: XID 79")

    empty.ghost("fault", "xid", "--all", "--code", "48")
    assert "cannot allocate all claims" in unschedulable(empty, "train")
    (waiting,) = names(empty, "train")
    empty.ghost("fault", "clear", "--all")
    running(empty, "train")
    assert names(empty, "train") == {waiting}
    assert taints(empty, "node-0") == {}
    assert allocatable(empty, "node-0") == "2"


@pytest.mark.parametrize("advertise", ["dra", "device-plugin", "both"])
def test_the_same_by_nvidia_gpu(empty, advertise):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "2", "--advertise", advertise)
    apply(empty, deployment(pod("train", gpus=1), 1))
    running(empty, "train")
    (old,) = names(empty, "train")
    first = (
        "gpu-0"
        if advertise != "dra"
        else objects(empty, "resourceclaims")[0]["status"]["allocation"]["devices"]["results"][0]["device"]
    )
    other = {"gpu-0": "gpu-1", "gpu-1": "gpu-0"}[first]
    empty.ghost("fault", "xid", "node-0", other)
    assert names(empty, "train") == {old}
    empty.ghost("fault", "clear", "node-0")
    done = empty.ghost("fault", "xid", "node-0", first)
    assert f"pod/{old} evicted\n" in done.stdout
    assert old not in names(empty, "train")
    running(empty, "train")
    empty.ghost("fault", "driver-crash", "node-0")
    unschedulable(empty, "train")
    assert phases(empty, "train") == ["Pending"]
    empty.ghost("fault", "clear", "node-0")
    running(empty, "train")


def test_two_faults_on_one_node_on_any_gpu(empty):
    empty.ghost("add-pool", "--count", "1")
    empty.ghost("fault", "xid", "node-0/gpu-7")
    empty.ghost("fault", "gpu-lost", "node-0/gpu-3")
    assert taints(empty, "node-0") == {
        "gpu-3": ["gpu.nvidia.com/gpu-lost=:NoExecute"],
        "gpu-7": ["gpu.nvidia.com/xid=79:NoExecute"],
    }
    apply(empty, ONE, deployment(pod("all", template="one"), 7))
    running(empty, "all", 6)
    assert {device for _, device in devices_of(empty, "all")} == {"gpu-0", "gpu-1", "gpu-2", "gpu-4", "gpu-5", "gpu-6"}


def test_the_reference_drivers_own_effect_keeps_the_holder(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "1")
    apply(empty, ONE, deployment(pod("train", template="one"), 1))
    running(empty, "train")
    before = names(empty, "train")
    empty.ghost("fault", "xid", "node-0", "gpu-0", "--as", "dra")
    assert taints(empty, "node-0") == {"gpu-0": ["gpu.nvidia.com/xid=79:NoSchedule"]}
    assert allocatable(empty, "node-0") == "1"
    apply(empty, pod("late", template="one"))
    unschedulable(empty, "late")
    assert names(empty, "train") == before
    assert phases(empty, "train") == ["Running"]
    empty.ghost("fault", "xid", "node-0", "gpu-0", "--as", "dra", "--effect", "NoExecute")
    assert names(empty, "train").isdisjoint(before)
    empty.ghost("fault", "xid", "node-0", "gpu-0", "--effect", "None")
    eventually(lambda: sorted([*phases(empty, "train"), *phases(empty, "late")]) == ["Pending", "Running"])


def test_components_that_speak_through_the_node(empty):
    empty.ghost("add-pool", "--count", "1")
    settled(empty)
    before = one(empty, "node", "node-0")
    statuses = {name: item["status"] for name, item in conditions(empty, "node-0").items()}
    assert statuses == {**dict.fromkeys(KUBELETS, "False"), "Ready": "True"}
    for component in ("eks-node-monitoring", "node-problem-detector", "nvsentinel"):
        empty.ghost("fault", "xid", "node-0", "gpu-2", "--as", component)
        found = conditions(empty, "node-0")
        said = {
            "eks-node-monitoring": ("AcceleratedHardwareReady", "False", "NvidiaXID79Error"),
            "node-problem-detector": ("XIDErrors", "True", "XID errors present in kernel log"),
            "nvsentinel": ("SysLogsXIDError", "True", "SysLogsXIDErrorIsNotHealthy"),
        }[component]
        assert (said[0], found[said[0]]["status"], found[said[0]]["reason"]) == said
        # Those that spoke before say that all is well; nobody else says anything.
        statuses = {**statuses, said[0]: said[1]}
        assert {name: item["status"] for name, item in found.items()} == statuses
        statuses[said[0]] = WELL[said[0]]
        node = one(empty, "node", "node-0")
        cordoned = component == "nvsentinel"
        assert node["spec"].get("unschedulable", False) is cordoned
        labels = {key for key in node["metadata"]["labels"] if key.startswith("k8saas.nvidia.com/")}
        assert bool(labels) is cordoned
        assert taints(empty, "node-0") == {}
        assert allocatable(empty, "node-0") == "8"
    empty.ghost("fault", "clear", "node-0", "gpu-2")
    eventually(lambda: "unschedulable" not in str(one(empty, "node", "node-0")["spec"].get("taints")))
    after = one(empty, "node", "node-0")
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    after_all = {name: item["status"] for name, item in conditions(empty, "node-0").items()}
    assert after_all == {**dict.fromkeys(KUBELETS, "False"), "Ready": "True", **WELL}
    assert empty.ghost("fault", "xid", "node-0", "gpu-2", "--code", "13", "--as", "eks-node-monitoring").returncode == 0
    assert "NvidiaXID13Warning" in events(empty, "Node", "node-0")


CLASSES = {
    "app": (11, 13),
    "app_or_driver": (8,),
    "driver": (37, 151),
    "engine": (39, 68),
    "pcie": (32, 80),
    "link": (74, 136),
    "gsp": (119, 120),
    "hw": (46, 109),
    "hw_memory": (48, 94),
    "hw_bus": (79,),
    "hw_power": (54, 162),
    "info": (14, 154),
}


def test_two_codes_of_every_class(empty):
    """What is stored, and what becomes of the pod, is what the catalogue says of the code."""
    assert {explain(code).category for found in CLASSES.values() for code in found} == set(CLASSES)
    codes = [code for found in CLASSES.values() for code in found]
    hopper = [code for code in codes if "H100" in explain(code).applies_to]
    blackwell = [code for code in codes if code not in hopper]
    empty.ghost("add-pool", "hopper", "--count", str(-(-len(hopper) // 8)))
    empty.ghost("add-pool", "blackwell", "--gpu", "b200", "--count", "1")
    apply(empty, ONE)
    for code in hopper:
        apply(empty, pod(f"x{code}", template="one", nodeSelector={"kubectl-ghost.dev/pool": "hopper"}))
    for code in blackwell:
        apply(empty, pod(f"x{code}", template="one", nodeSelector={"kubectl-ghost.dev/pool": "blackwell"}))
    for code in codes:
        running(empty, f"x{code}")
    devices = held_by(empty, *(f"x{code}" for code in codes))
    available = dict.fromkeys({node for node, _ in devices.values()}, 8)
    for code in codes:
        row, (node, device) = explain(code), devices[f"x{code}"]
        empty.ghost("fault", "xid", node, device, "--code", str(code))
        effect = {"NoSchedule": "NoExecute", "None": "None"}[row.dra_effect]
        assert taints(empty, node)[device] == [f"gpu.nvidia.com/xid={code}:{effect}"], code
        available[node] -= not row.ignored_by_device_plugin
        assert allocatable(empty, node) == str(available[node]), code
        assert f"XID{code}" in events(empty, "Node", node), code
        left = objects(empty, "pods", "-l", f"app=x{code}")
        if row.exit_code is not None:
            # With an effect that evicts, the failed pod stays to be looked at: it holds nothing any more.
            (failed,) = left
            assert failed["status"]["phase"] == "Failed", code
            ended = failed["status"]["containerStatuses"][0]["state"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (row.exit_code, "Error"), code
            eventually(lambda name=f"x{code}": devices_of(empty, name) == [])
        elif effect == "NoExecute":
            assert left == [], code
        else:
            assert [item["status"]["phase"] for item in left] == ["Running"], code
            assert devices_of(empty, f"x{code}") == [(node, device)], code


def test_a_gpu_whose_application_failed_serves_the_next_one(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "1")
    apply(empty, ONE, deployment(pod("train", template="one"), 1))
    running(empty, "train")
    (old,) = names(empty, "train")
    empty.ghost("fault", "xid", "node-0", "gpu-0", "--code", "31")
    running(empty, "train")
    assert phases(empty, "train") == ["Failed", "Running"]
    assert one(empty, "pod", old)["status"]["message"] == "XID 31 on node-0/gpu-0"
    assert devices_of(empty, "train") == [("node-0", "gpu-0")]


def test_one_fault_among_128_gpus(empty):
    """With a taint a slice may hold 64 devices only."""
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "128")
    empty.ghost("fault", "xid", "node-0", "gpu-127")
    slices = [item["spec"] for item in objects(empty, "resourceslices")]
    assert taints(empty, "node-0") == {"gpu-127": ["gpu.nvidia.com/xid=79:NoExecute"]}
    assert sum(len(spec["devices"]) for spec in slices) == 128
    assert max(len(spec["devices"]) for spec in slices) <= 64
    assert {spec["pool"]["resourceSliceCount"] for spec in slices} == {len(slices)}
    apply(empty, ONE, deployment(pod("train", template="one"), 110))
    running(empty, "train", 110)
    assert ("node-0", "gpu-127") not in devices_of(empty, "train")
    empty.ghost("fault", "clear", "node-0")
    assert taints(empty, "node-0") == {}
    assert sum(len(item["spec"]["devices"]) for item in objects(empty, "resourceslices")) == 128


@pytest.mark.parametrize(
    ("kind", "status", "key", "reason"),
    [
        ("node-down", "False", "node.kubernetes.io/not-ready", "NodeDown"),
        ("node-unreachable", "Unknown", "node.kubernetes.io/unreachable", "NodeStatusUnknown"),
    ],
)
def test_a_node_goes_and_comes_back(empty, kind, status, key, reason):
    empty.ghost("add-pool", "--count", "2")
    tolerations = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]
    apply(empty, ONE, deployment(pod("train", template="one", tolerations=tolerations), 1))
    running(empty, "train")
    ((node, _),) = devices_of(empty, "train")
    before = names(empty, "train")
    assert empty.ghost("fault", kind, node).stderr == f"{kind} on 1 node\n"
    ready = conditions(empty, node)["Ready"]
    assert (ready["status"], ready["reason"]) == (status, reason)
    eventually(lambda: {f"{key}:NoSchedule", f"{key}:NoExecute"} <= node_taints(empty, node), 90)
    eventually(lambda: names(empty, "train").isdisjoint(before), 90)
    running(empty, "train")
    assert devices_of(empty, "train")[0][0] != node
    assert conditions(empty, node)["Ready"]["status"] == status
    assert taints(empty, node) == {}
    empty.ghost("fault", "clear", node)
    assert conditions(empty, node)["Ready"]["status"] == "True"
    assert {item["status"] for item in conditions(empty, node).values()} == {"True", "False"}
    eventually(lambda: not node_taints(empty, node), 90)


def test_a_fault_with_an_end_is_over_at_the_next_command(empty):
    empty.ghost("add-pool", "--count", "2")
    empty.ghost("fault", "xid", "node-0", "gpu-2", "--for", "1s")
    assert "xid=79" in str(taints(empty, "node-0"))
    eventually(lambda: "(over)" in empty.ghost("fault", "list").stdout)
    empty.ghost("fault", "thermal", "node-1", "gpu-0")
    assert taints(empty, "node-0") == {}
    assert allocatable(empty, "node-0") == "8"


def test_a_whole_gpu_fails_under_dynamic_mig(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "2", "--mig", "dynamic")
    small = {"deviceClassName": "mig.nvidia.com"}
    profile = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
    apply(empty, claim_template("part", {**small, "selectors": [{"cel": {"expression": profile}}]}))
    apply(empty, *(pod(f"p{number}", template="part") for number in range(8)))
    for number in range(8):
        running(empty, f"p{number}")
    parents = {
        name: device.partition("-mig-")[0]
        for name, (_, device) in held_by(empty, *(f"p{number}" for number in range(8))).items()
    }
    assert set(parents.values()) == {"gpu-0", "gpu-1"}
    empty.ghost("fault", "xid", "node-0", "gpu-1")
    broken = taints(empty, "node-0")
    published = [
        device["name"] for item in objects(empty, "resourceslices") for device in item["spec"].get("devices", ())
    ]
    assert set(broken) == {name for name in published if name.split("-mig-")[0] == "gpu-1"}
    assert len(broken) > 20
    for name, gpu in parents.items():
        assert phases(empty, name) == ([] if gpu == "gpu-1" else ["Running"]), name


def test_at_rest_nothing_is_written(empty):
    empty.ghost("add-pool", "--count", "3")
    for arguments in (["xid", "node-0"], ["gpu-lost", "node-1/gpu-1", "--as", "dra,nvsentinel"], ["thermal", "node-2"]):
        empty.ghost("fault", *arguments)
    empty.ghost("sync")
    settled_versions = versions(empty)
    for _ in range(2):
        assert "configured" not in empty.ghost("sync").stdout
    assert "configured" not in empty.ghost("fault", "xid", "node-0").stdout
    assert versions(empty) == settled_versions
