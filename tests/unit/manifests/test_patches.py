"""Patches: what is ours is brought to the declaration, what is not survives, and at rest there is none."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kubectl_ghost.cluster.writes import merged
from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.hardware import Advertise, NodeHardware, Taint
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.manifests.node import node
from kubectl_ghost.manifests.patches import changed_keys, node_patch, same_quantity, status_patch
from kubectl_ghost.manifests.resource_slice import resource_slices
from tests.unit.manifests.slices import updated_slice

NOW = "2026-11-30T12:00:00Z"
BASE = configure("node", None, PoolRequest())
FOREIGN_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}

taints = st.lists(
    st.builds(Taint, st.sampled_from("abc"), st.sampled_from(["NoSchedule", "NoExecute"]), st.sampled_from(["", "1"])),
    unique_by=lambda taint: (taint.key, taint.effect),
    max_size=3,
).map(tuple)
pools = st.builds(
    lambda model, gpus, advertise, labels, taints, zones, tainted: replace(
        configure("node", None, PoolRequest(model=model, gpus=gpus, advertise=advertise)),
        labels=tuple(sorted(labels.items())),
        taints=taints,
        zones=zones,
        tainted=tainted,
    ),
    st.sampled_from(model_keys()),
    st.integers(1, 16),
    st.sampled_from(Advertise),
    st.dictionaries(st.sampled_from(["x", "y", "z"]), st.sampled_from(["1", "2"])),
    taints,
    st.sampled_from([(), ("a", "b")]),
    st.booleans(),
)


def live_node(hardware):
    """A node as it stands after kwok, the controllers and people have added what is theirs."""
    made = node(hardware)
    made["metadata"] = {
        **made["metadata"],
        "labels": {**made["metadata"]["labels"], "theirs": "1"},
        "annotations": {**made["metadata"]["annotations"], "node.alpha.kubernetes.io/ttl": "0"},
    }
    made["spec"] = {**made["spec"], "taints": [FOREIGN_TAINT, *made["spec"].get("taints", [])]}
    capacity = {**made["status"]["capacity"], "example.com/fpga": "1"}
    made["status"] = {"capacity": capacity, "allocatable": capacity, "phase": "Running"}
    return made


@given(pools, pools)
def test_a_patch_leads_to_the_new_declaration_and_leaves_the_rest(old, new):
    before, after = NodeHardware(old, 1), NodeHardware(new, 1)
    live = live_node(before)
    patched = merged(merged(live, node_patch(before, after, live)), status_patch(after, live, NOW))
    wanted = live_node(after)
    assert patched["metadata"] == wanted["metadata"]
    assert patched["status"] == wanted["status"]
    by_identity = {(taint["key"], taint["effect"]): taint for taint in patched["spec"]["taints"]}
    assert by_identity == {(taint["key"], taint["effect"]): taint for taint in wanted["spec"]["taints"]}
    assert node_patch(after, after, patched) == {}
    assert status_patch(after, patched, NOW) == {}


@given(pools)
def test_at_rest_there_is_nothing_to_write(pool):
    hardware = NodeHardware(pool, 0)
    live = live_node(hardware)
    assert node_patch(hardware, hardware, live) == {}
    assert status_patch(hardware, live, NOW) == {}


def test_what_someone_removed_or_changed_comes_back():
    hardware = NodeHardware(BASE, 0)
    live = live_node(hardware)
    del live["metadata"]["labels"]["nvidia.com/gpu.product"]
    live["metadata"]["labels"]["nvidia.com/gpu.count"] = "3"
    live["status"]["capacity"] = {**live["status"]["capacity"], "nvidia.com/gpu": "3"}
    assert node_patch(hardware, hardware, live) == {
        "metadata": {"labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}}
    }
    assert status_patch(hardware, live, NOW) == {"status": {"capacity": {"nvidia.com/gpu": "8"}}}


def test_capacity_left_by_an_interrupted_change_goes():
    # The declaration already says dra; the write to /status that takes nvidia.com/gpu away did not happen.
    live = live_node(NodeHardware(BASE, 0))
    wanted = NodeHardware(replace(BASE, advertise=Advertise.DRA), 0)
    gone = {"nvidia.com/gpu": None}
    assert status_patch(wanted, live, NOW) == {"status": {"allocatable": gone, "capacity": gone}}


def test_the_time_of_a_taint_that_stays_is_no_difference():
    hardware = NodeHardware(replace(BASE, taints=(Taint("k", "NoExecute", "v"),)), 0)
    live = live_node(hardware)
    live["spec"]["taints"][-1] = {**live["spec"]["taints"][-1], "timeAdded": "2026-01-01T00:00:00Z"}
    assert node_patch(hardware, hardware, live) == {}


def test_quantities_are_compared_as_numbers():
    assert same_quantity("2048Gi", "2Ti")
    assert same_quantity("0.5", "500m")
    assert not same_quantity("1", "2")
    assert not same_quantity("junk", "1")


def published(hardware=None):
    (made,) = resource_slices(hardware or NodeHardware(BASE, 0), {"metadata": {"uid": "u-1"}})
    made["metadata"]["resourceVersion"] = "7"
    made["spec"]["pool"]["generation"] = 4
    return made


def test_a_slice_that_is_as_it_should_be_is_left_alone():
    (wanted,) = resource_slices(NodeHardware(BASE, 0), {"metadata": {"uid": "u-1"}})
    assert updated_slice(wanted, published()) is None


def test_a_slices_spec_is_replaced_whole_in_its_generation():
    hardware = NodeHardware(replace(BASE, gpus=2), 0)
    (wanted,) = resource_slices(hardware, {"metadata": {"uid": "u-1"}})
    updated = updated_slice(wanted, published())
    assert len(updated["spec"]["devices"]) == 2
    assert updated["spec"]["pool"]["generation"] == 4
    assert updated["metadata"]["resourceVersion"] == "7"


def test_a_slice_of_a_former_node_of_that_name_gets_the_new_owner():
    (wanted,) = resource_slices(NodeHardware(BASE, 0), {"metadata": {"uid": "u-2"}})
    assert updated_slice(wanted, published())["metadata"]["ownerReferences"][0]["uid"] == "u-2"


def test_our_label_comes_back_on_a_slice_that_lacks_nothing_else():
    (wanted,) = resource_slices(NodeHardware(BASE, 0), {"metadata": {"uid": "u-1"}})
    for label in wanted["metadata"]["labels"]:
        live = published()
        live["metadata"]["labels"] = {"theirs": "1", **live["metadata"]["labels"]}
        del live["metadata"]["labels"][label]
        updated = updated_slice(wanted, live)
        assert updated["metadata"]["labels"] == {"theirs": "1", **wanted["metadata"]["labels"]}
        assert updated["spec"] == live["spec"]


def test_labels_of_others_on_a_slice_are_no_difference():
    (wanted,) = resource_slices(NodeHardware(BASE, 0), {"metadata": {"uid": "u-1"}})
    live = published()
    live["metadata"]["labels"]["theirs"] = "1"
    assert updated_slice(wanted, live) is None


def test_what_is_gone_already_is_not_taken_away_again():
    assert changed_keys({"a": "1", "b": "1"}, {}, {"b": "2", "theirs": "1"}) == {"b": None}
