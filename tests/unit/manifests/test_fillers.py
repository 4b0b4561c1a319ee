"""Filler pods and claims: which there are for a declaration, and that each has exactly its device."""

from dataclasses import replace

import pytest

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.devices import offers
from kubectl_ghost.domain.hardware import (
    Advertise,
    GpuState,
    MigMode,
    MigStrategy,
    NodeHardware,
    Occupancy,
    OccupancyKind,
    Sharing,
    SharingKind,
)
from kubectl_ghost.domain.holders import assignments
from kubectl_ghost.domain.identity import gpu_uuid
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.manifests.fillers import claim, fillers, namespace, place_of, pod, priority_class
from kubectl_ghost.manifests.resource_slice import resource_slices
from tests.unit.manifests.slices import devices_in

BY_PODS = Occupancy(OccupancyKind.PODS)
SPLIT = (MigInstance("3g.40gb", 0), MigInstance("1g.10gb", 4), MigInstance("1g.10gb", 5))


def hardware(advertise=Advertise.BOTH, model="h100", *, mig=None, **settings):
    """A node of two GPUs, the second of them busy by pods."""
    base = configure("a-gpu", None, PoolRequest(model=model, gpus=2, advertise=advertise))
    return NodeHardware(replace(base, **settings), 0).with_gpu(1, GpuState(mig=mig, occupancy=BY_PODS))


def limits(filler):
    return pod(filler)["spec"]["containers"][0]["resources"].get("limits")


def chosen(declared, filler):
    """The devices of a node whose attributes satisfy the expression of a filler's claim."""
    expression = claim(filler)["spec"]["devices"]["requests"][0]["exactly"]["selectors"][0]["cel"]["expression"]
    domain, uuid = expression.split('"')[3], expression.split('"')[-2]
    key = "uuid" if domain == keys.GPU_DRIVER else f"{domain}/uuid"
    devices = devices_in(resource_slices(declared, {"metadata": {"uid": "x"}}))
    return [found["name"] for found in devices if found["attributes"].get(key, {}).get("string") == uuid]


@pytest.mark.parametrize("advertise", [Advertise.BOTH, Advertise.DRA])
def test_a_claimed_gpu_is_named_by_its_uuid(advertise):
    [filler] = fillers(hardware(advertise))
    assert (filler.name, filler.uuid) == ("a-gpu-0-gpu-1", gpu_uuid("a-gpu-0", 1))
    request = claim(filler)["spec"]["devices"]["requests"][0]["exactly"]
    assert request["deviceClassName"] == "gpu.nvidia.com"
    assert chosen(hardware(advertise), filler) == ["gpu-1"]
    spec = pod(filler)["spec"]
    assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimName": "a-gpu-0-gpu-1"}]
    assert spec["containers"][0]["resources"] == {"claims": [{"name": "gpu"}]}


def test_every_instance_of_a_split_gpu_has_its_own_filler():
    declared = hardware(mig=SPLIT)
    found = fillers(declared)
    assert len(found) == 3
    assert [chosen(declared, filler) for filler in found] == [[filler.device] for filler in found]
    classes = {claim(filler)["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] for filler in found}
    assert classes == {"mig.nvidia.com"}


@pytest.mark.parametrize(("model", "device"), [("h100", "gpu-1"), ("a100", "gpu-1-mig-7g80gb-0-0")])
def test_under_dynamic_mig_one_device_takes_all_of_a_gpu(model, device):
    declared = hardware(model=model)
    declared = replace(declared, settings=replace(declared.settings, mig=MigMode.DYNAMIC))
    [filler] = fillers(declared)
    assert filler.device == device
    assert chosen(declared, filler) == [device]


def test_on_the_device_plugins_path_the_pod_says_which_gpu_it_has():
    declared = hardware(Advertise.DEVICE_PLUGIN)
    [filler] = fillers(declared)
    made = pod(filler)
    assert limits(filler) == {"nvidia.com/gpu": "1"}
    assert "resourceClaims" not in made["spec"]
    assert assignments([made], offers(declared)) == {(keys.FILLER_NAMESPACE, "a-gpu-0-gpu-1"): ("gpu-1",)}


@pytest.mark.parametrize(
    ("strategy", "mig", "expected"),
    [
        (MigStrategy.MIXED, SPLIT, ["nvidia.com/mig-3g.40gb", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb"]),
        (MigStrategy.NONE, SPLIT, ["nvidia.com/gpu"]),
        (MigStrategy.SINGLE, SPLIT, []),
        (MigStrategy.MIXED, (), []),
    ],
)
def test_split_gpus_on_the_device_plugins_path_by_strategy(strategy, mig, expected):
    found = fillers(hardware(Advertise.DEVICE_PLUGIN, mig=mig, mig_strategy=strategy))
    assert [filler.resource for filler in found] == expected


@pytest.mark.parametrize(("renamed", "resource"), [(False, "nvidia.com/gpu"), (True, "nvidia.com/gpu.shared")])
def test_a_shared_gpu_is_busy_with_all_its_shares(renamed, resource):
    sharing = Sharing(SharingKind.TIME_SLICING, 3, renamed)
    declared = hardware(Advertise.DEVICE_PLUGIN, sharing=sharing)
    [filler] = fillers(declared)
    assert limits(filler) == {resource: "3"}
    [devices] = assignments([pod(filler)], offers(declared)).values()
    assert devices == ("gpu-1::0", "gpu-1::1", "gpu-1::2")


def test_what_is_busy_by_taint_or_free_has_no_filler():
    declared = hardware()
    assert fillers(declared.with_gpu(1, GpuState(occupancy=Occupancy()))) == []
    assert fillers(declared.with_gpu(1, GpuState())) == []


def test_a_filler_can_stand_anywhere_asks_for_nothing_else_and_goes_at_once():
    [filler] = fillers(hardware())
    spec = pod(filler)["spec"]
    assert {item["effect"] for item in spec["tolerations"]} == {"NoSchedule", "PreferNoSchedule", "NoExecute"}
    assert all(set(item) == {"operator", "effect"} for item in spec["tolerations"])
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a-gpu-0"]}]}
    assert spec["terminationGracePeriodSeconds"] == 0
    assert "requests" not in spec["containers"][0]["resources"]


@pytest.mark.parametrize(("priority", "name"), [(0, "0"), (7, "7"), (-5, "m5")])
def test_a_priority_has_a_class_of_ours_whose_pods_preempt_nobody(priority, name):
    made = priority_class(priority)
    assert made["metadata"]["name"] == f"kubectl-ghost-occupancy-{name}"
    assert (made["value"], made["preemptionPolicy"], made["globalDefault"]) == (priority, "Never", False)
    [filler] = fillers(hardware())
    assert pod(replace(filler, priority=priority))["spec"]["priorityClassName"] == made["metadata"]["name"]


def test_everything_carries_our_mark_and_stands_in_our_namespace():
    [filler] = fillers(hardware())
    for made in (namespace(), priority_class(0), claim(filler), pod(filler)):
        assert made["metadata"]["labels"] == {keys.MANAGED_BY_LABEL: keys.MANAGED_BY}
    assert {made["metadata"]["namespace"] for made in (claim(filler), pod(filler))} == {namespace()["metadata"]["name"]}


@pytest.mark.parametrize("device", ["gpu-1", "gpu-0-mig-1g10gb-19-0", "gpu-12-mig-1g10gb-me-20-3"])
def test_a_fillers_name_says_its_node_and_device(device):
    assert place_of(f"a-gpu-0-{device}") == ("a-gpu-0", device)
