"""MIG on the real scheduler: parts and whole exclude each other, by the administrator's layout and by counters."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.devices import table_of, whole_beside_parts
from kubectl_ghost.domain.hardware import GpuState
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION
from kubectl_ghost.domain.mig import mig_table
from kubectl_ghost.domain.mig_placement import layouts
from kubectl_ghost.domain.slice_rules import slice_rules
from kubectl_ghost.manifests.resource_slice import resource_slices
from kubectl_ghost.operations.fleet import hardware_of
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
    versions,
)
from tests.e2e.support import eventually
from tests.layouts import is_maximal

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
ONE_GPU = ("--count", "1", "--gpus-per-node", "1")
MIG_MODELS = [key for key in model_keys() if mig_table(key) is not None]
WHOLE = claim_template("whole", {})


def instance(profile, name=None):
    """A template for one instance of a profile."""
    request = {
        "deviceClassName": "mig.nvidia.com",
        **cel(f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"),
    }
    return claim_template(name or profile.partition(".")[0], request)


def counted(name, resource, number=1):
    """A pod that asks for a resource other than nvidia.com/gpu."""
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"limits": {resource: str(number)}}
    return made


def delete(cluster, kind, name):
    cluster.kubectl("delete", kind, name, "--wait=true")


def only_pending(cluster, app):
    """The scheduler has refused it, and no pod of it runs."""
    assert "cannot allocate all claims" in unschedulable(cluster, app)
    assert phases(cluster, app) == ["Pending"]


def test_static_parts_and_whole_exclude_each_other(empty):
    empty.ghost("add-pool", *ONE_GPU)
    empty.ghost("mig-split", "node-0/gpu-0", "--profiles", "1g.10gb*7")
    apply(empty, WHOLE, instance("1g.10gb"), pod("card", template="whole"), deployment(pod("part", template="1g"), 8))
    running(empty, "part", 7)
    assert "cannot allocate all claims" in unschedulable(empty, "part")
    only_pending(empty, "card")
    held = devices_of(empty, "part")
    assert sorted(held) == [("node-0", f"gpu-0-mig-1g10gb-19-{start}") for start in range(7)]

    # The control: without the layout the very same pending pod runs, and parts wait.
    delete(empty, "deployment", "part")
    eventually(lambda: phases(empty, "part") == [])
    empty.ghost("mig-split", "node-0/gpu-0", "--off", "--force")
    running(empty, "card")
    assert devices_of(empty, "card") == [("node-0", "gpu-0")]
    apply(empty, pod("late", template="1g"))
    only_pending(empty, "late")


def test_dynamic_a_whole_card_keeps_parts_away_and_leaves_them_room(empty):
    empty.ghost("add-pool", "--mig", "dynamic", *ONE_GPU)
    apply(empty, WHOLE, instance("1g.10gb"), pod("card", template="whole"))
    running(empty, "card")
    assert devices_of(empty, "card") == [("node-0", "gpu-0")]
    apply(empty, pod("part", template="1g"))
    only_pending(empty, "part")
    delete(empty, "pod", "card")
    running(empty, "part")
    ((_, part),) = devices_of(empty, "part")
    assert part.startswith("gpu-0-mig-1g10gb-19-")
    apply(empty, pod("again", template="whole"))
    only_pending(empty, "again")


def test_dynamic_seven_parts_run_and_the_eighth_waits(empty):
    empty.ghost("add-pool", "--mig", "dynamic", *ONE_GPU)
    apply(empty, instance("1g.10gb"), deployment(pod("part", template="1g"), 8))
    running(empty, "part", 7)
    assert "cannot allocate all claims" in unschedulable(empty, "part")
    assert phases(empty, "part").count("Pending") == 1
    assert len(set(devices_of(empty, "part"))) == 7


def test_dynamic_instances_that_overlap_exclude_each_other(empty):
    empty.ghost("add-pool", "--mig", "dynamic", *ONE_GPU)
    apply(empty, instance("3g.40gb"), instance("4g.40gb"), instance("1g.10gb"))
    apply(empty, deployment(pod("halves", template="3g"), 2))
    running(empty, "halves", 2)
    apply(empty, pod("four", template="4g"))
    only_pending(empty, "four")
    delete(empty, "deployment", "halves")
    running(empty, "four")
    apply(empty, pod("three", template="3g"))
    running(empty, "three")
    assert devices_of(empty, "four") == [("node-0", "gpu-0-mig-4g40gb-5-0")]
    assert devices_of(empty, "three") == [("node-0", "gpu-0-mig-3g40gb-9-4")]
    apply(empty, pod("one", template="1g"))
    only_pending(empty, "one")


@pytest.mark.parametrize(
    ("strategy", "resource", "left"), [("mixed", "nvidia.com/mig-1g.10gb", "0"), ("single", "nvidia.com/gpu", "7")]
)
def test_the_device_plugin_counts_instances(empty, strategy, resource, left):
    empty.ghost("add-pool", "c", "--advertise", "device-plugin", "--mig-strategy", strategy, *ONE_GPU)
    empty.ghost("mig-split", "c-0", "--config", "all-1g.10gb")
    (node,) = objects(empty, "nodes")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == left
    apply(empty, deployment(counted("part", resource), 8))
    running(empty, "part", 7)
    assert f"Insufficient {resource}" in unschedulable(empty, "part")
    if strategy == "mixed":
        apply(empty, counted("card", "nvidia.com/gpu"))
        assert "Insufficient nvidia.com/gpu" in unschedulable(empty, "card")


def test_a_held_gpu_is_split_anew_only_by_force(empty):
    empty.ghost("add-pool", *ONE_GPU)
    empty.ghost("mig-split", "node-0", "--profiles", "3g.40gb*2")
    apply(empty, instance("3g.40gb"), deployment(pod("half", template="3g"), 1))
    running(empty, "half")
    (holder,) = objects(empty, "pods", "-l", "app=half")
    before = versions(empty)

    refused = empty.ghost("mig-split", "node-0", "--profiles", "1g.10gb*7", check=False)
    assert refused.returncode == 1
    assert f"default/{holder['metadata']['name']}" in refused.stderr
    same = empty.ghost("mig-split", "node-0", "--profiles", "3g.40gb*2")
    assert "configured" not in same.stdout
    assert versions(empty) == before

    forced = empty.ghost("mig-split", "node-0", "--profiles", "1g.10gb*7", "--force")
    assert f'pod "{holder["metadata"]["name"]}" deleted' in forced.stdout
    only_pending(empty, "half")
    apply(empty, instance("1g.10gb"), deployment(pod("part", template="1g"), 7))
    running(empty, "part", 7)
    (made,) = objects(empty, "resourceslices")
    assert made["spec"]["pool"]["generation"] == 1


def test_a_pools_mig_mode_is_not_changed_under_a_holder(empty):
    empty.ghost("add-pool", *ONE_GPU)
    apply(empty, WHOLE, pod("card", template="whole"))
    running(empty, "card")
    refused = empty.ghost("add-pool", "--mig", "dynamic", check=False)
    assert refused.returncode == 1
    assert "default/card" in refused.stderr
    assert 'pod "card" deleted' in empty.ghost("add-pool", "--mig", "dynamic", "--force").stdout
    apply(empty, instance("1g.10gb"), pod("part", template="1g"))
    running(empty, "part")


def test_time_slicing_lets_four_pods_share_a_gpu(empty):
    empty.ghost("add-pool", "s", "--advertise", "device-plugin", "--sharing", "time-slicing=4", *ONE_GPU)
    (node,) = objects(empty, "nodes")
    labels = node["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-SHARED"
    assert (labels["nvidia.com/gpu.replicas"], labels["nvidia.com/gpu.sharing-strategy"]) == ("4", "time-slicing")
    apply(empty, deployment(pod("slice", gpus=1), 5))
    running(empty, "slice", 4)
    assert "Insufficient nvidia.com/gpu" in unschedulable(empty, "slice")


def test_renamed_shares_have_their_own_name(empty):
    empty.ghost("add-pool", "s", "--advertise", "device-plugin", "--sharing", "mps=2", "--rename-by-default", *ONE_GPU)
    apply(empty, deployment(counted("slice", "nvidia.com/gpu.shared"), 3), pod("card", gpus=1))
    running(empty, "slice", 2)
    assert "Insufficient nvidia.com/gpu.shared" in unschedulable(empty, "slice")
    assert "Insufficient nvidia.com/gpu" in unschedulable(empty, "card")


def stored_as_derived(cluster):
    """Whether the API server has kept every slice as it was sent; returns how many devices that are."""
    version = json.loads(cluster.kubectl("get", "--raw", "/version").stdout)
    rules = slice_rules((int(version["major"]), int(version["minor"])))
    stored = {item["metadata"]["name"]: item["spec"] for item in objects(cluster, "resourceslices")}
    devices = 0
    for node in objects(cluster, "nodes"):
        for wanted in resource_slices(hardware_of(node), node, rules):
            spec = stored.pop(wanted["metadata"]["name"])
            # The generation counts writes, and is the only thing that is not derived.
            wanted["spec"]["pool"]["generation"] = spec["pool"]["generation"]
            assert spec == wanted["spec"]
            devices += len(spec.get("devices", ()))
    assert stored == {}
    return devices


def declare(cluster, declarations):
    """Write declarations on nodes, in one request each of one call: a command for every layout would take minutes."""
    documents = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": hardware.node_name, "annotations": {HARDWARE_ANNOTATION: encode(hardware)}},
        }
        for hardware in declarations
    ]
    stdin = yaml.safe_dump_all(documents)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=stdin)


def test_every_maximal_layout_of_every_model_is_accepted_as_it_is(empty):
    instances = 0
    waiting = {}
    for key in MIG_MODELS:
        table = table_of(key)
        waiting[key] = [layout for layout in layouts(table) if is_maximal(table, layout)]
        instances += sum(map(len, waiting[key]))
        nodes = -(-len(waiting[key]) // 128)
        gpus = -(-len(waiting[key]) // nodes)
        size = ("--count", str(nodes), "--gpus-per-node", str(gpus), "--wait=false")
        empty.ghost("add-pool", key, "--gpu", key, *size)
    declarations, spare = [], 0
    for whole in map(hardware_of, objects(empty, "nodes")):
        share = [
            waiting[whole.settings.model].pop() for _ in range(whole.settings.gpus) if waiting[whole.settings.model]
        ]
        spare += whole.settings.gpus - len(share)
        declarations.append(replace(whole, gpus=tuple((gpu, GpuState(mig=mig)) for gpu, mig in enumerate(share))))
    assert not any(waiting.values())
    declare(empty, declarations)
    empty.ghost("sync")
    assert stored_as_derived(empty) == instances + spare


def test_a_dynamic_pool_of_every_model_is_accepted_as_it_is(empty):
    expected = 0
    for key in MIG_MODELS:
        places = sum(len(profile.starts) for profile in table_of(key).profiles)
        expected += 2 * (places + whole_beside_parts(key))
        flags = ("--mig", "dynamic", "--count", "1", "--gpus-per-node", "2", "--wait=false")
        empty.ghost("add-pool", key, "--gpu", key, *flags)
    assert stored_as_derived(empty) == expected


@pytest.mark.parametrize("mig", ["static", "dynamic"])
def test_the_example_runs_on_both_kinds_of_mig(empty, mig):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "1", "--mig", mig)
    if mig == "static":
        empty.ghost("mig-split", "node-0/gpu-0", "--profiles", "3g.40gb*2")
    empty.kubectl("apply", "-f", str(EXAMPLES / "mig.yaml"))
    running(empty, "halves", 2)
    assert {device for _, device in devices_of(empty, "halves")} == {"gpu-0-mig-3g40gb-9-0", "gpu-0-mig-3g40gb-9-4"}
