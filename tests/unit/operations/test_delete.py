"""Deleting: all of a pool and nothing beside it, whatever labels others have put where."""

import pytest

from kubectl_ghost.cluster.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError, GuardRefusal
from kubectl_ghost.operations.delete_pool import select_pools
from kubectl_ghost.operations.fleet import OURS, pool_selector
from tests.unit.operations import fleet
from tests.unit.operations.fleet import DEVICE_PLUGIN, DRA, add_pool, delete_pool, scale_pool, state
from tests.unit.operations.memory import Memory, Store


def both_labels(pool):
    return {**fleet.MARKS, keys.POOL_LABEL: pool}


@pytest.mark.parametrize("name", ["worker", "a-7", "a-1"])
@pytest.mark.parametrize("everything", [False, True])
def test_a_node_with_our_labels_that_kwok_does_not_play_is_never_deleted(name, everything):
    store = Store()
    store.put(NODES, fleet.node(name, labels=both_labels("a")))
    add_pool(Memory(store), "a", 1, allow_mixed=True)
    store.put(PODS, fleet.pod("theirs", name))
    delete_pool(Memory(store), *([] if everything else ["a"]))
    assert store.names(NODES) == [name]
    assert store.names(PODS) == ["theirs"]


def test_the_collection_is_refused_if_such_a_node_is_among_those_listed():
    store = fleet.cluster(1, "a")
    store.put(NODES, fleet.node("a-1", labels=both_labels("a")))
    with pytest.raises(GuardRefusal):
        Memory(store).delete_collection(NODES, pool_selector("a"), store.all(NODES))
    assert store.names(NODES) == ["a-0", "a-1"]


def test_scaling_down_does_not_reach_such_a_node():
    store = Store()
    store.put(NODES, fleet.node("a-7", labels=both_labels("a")))
    add_pool(Memory(store), "a", 2, allow_mixed=True)
    scale_pool(Memory(store), "a", 1)
    assert store.names(NODES) == ["a-0", "a-7"]


def test_a_pool_in_order_goes_by_two_requests():
    store = fleet.cluster(5)
    writer = Memory(store)
    delete_pool(writer, "node")
    assert sorted(str(sent) for sent in writer.writes if not sent.name) == ["delete nodes/", "delete resourceslices/"]
    # Its first node alone is told that the pool goes, and goes last.
    assert [str(sent) for sent in writer.writes if sent.name.startswith("node-")] == [
        "patch nodes/node-0",
        "delete nodes/node-0",
    ]
    assert writer.writes[-1].name == "node-0"
    assert {sent.query["labelSelector"] for sent in writer.writes if not sent.name} == {
        f"{OURS},{keys.POOL_LABEL}=node"
    }
    assert store.objects == {}


@pytest.mark.parametrize("going", ["a", "b"])
def test_a_pool_label_changed_by_hand_moves_no_node_to_another_pool(going):
    store = Store()
    for name in ("a", "b"):
        add_pool(Memory(store), name, 2)
    store.edit(NODES, "a-1", lambda item: item["metadata"]["labels"].update({keys.POOL_LABEL: "b"}))
    delete_pool(Memory(store), going)
    staying = "b" if going == "a" else "a"
    assert store.names(NODES) == [f"{staying}-0", f"{staying}-1"]
    assert [item["spec"]["nodeName"] for item in store.all(RESOURCE_SLICES)] == store.names(NODES)


def test_a_pool_label_taken_away_by_hand_saves_no_node():
    store = fleet.cluster(2)
    store.edit(NODES, "node-1", lambda item: item["metadata"]["labels"].pop(keys.POOL_LABEL))
    delete_pool(Memory(store), "node")
    assert store.objects == {}


def test_a_changed_pool_label_is_put_right_by_add_pool():
    store = fleet.cluster(2)
    before = state(store)
    store.edit(NODES, "node-1", lambda item: item["metadata"]["labels"].update({keys.POOL_LABEL: "b"}))
    add_pool(Memory(store))
    assert state(store) == before


@pytest.mark.parametrize("name", ["node-01", "node-02", "node-", "node-x", "node"])
def test_a_name_that_is_no_pool_and_number_is_in_no_pool(name):
    store = fleet.cluster(2)
    store.put(NODES, fleet.node(name, annotations=fleet.FAKE, labels=both_labels("node")))
    delete_pool(Memory(store), "node")
    assert store.names(NODES) == [name]


@pytest.mark.parametrize(("going", "staying"), [("a", ["a-1-0", "a-1-1"]), ("a-1", ["a-0", "a-1"])])
def test_pools_whose_names_begin_alike_are_told_apart(going, staying):
    store = Store()
    for name in ("a", "a-1"):
        add_pool(Memory(store), name, 2)
    delete_pool(Memory(store), going)
    assert store.names(NODES) == staying
    assert [item["spec"]["nodeName"] for item in store.all(RESOURCE_SLICES)] == staying


def test_pods_go_before_the_hardware_that_they_stand_on():
    store = fleet.cluster(2)
    store.put(PODS, fleet.pod("one", "node-0"))
    store.put(PODS, fleet.pod("two", "node-1", phase="Succeeded"))
    store.put(PODS, fleet.pod("pending"))
    writer = Memory(store)
    delete_pool(writer, "node")
    assert sorted(sent.name for sent in writer.writes[1:3]) == ["one", "two"]
    assert store.names(PODS) == ["pending"]


def test_a_pod_that_comes_back_meanwhile_goes_as_well():
    store = fleet.cluster(2)
    writer = Memory(store)
    writer.before = lambda number, sent: number == 1 and store.put(PODS, fleet.pod("daemon", "node-1"))
    delete_pool(writer, "node")
    assert store.names(PODS) == []


def test_when_scaling_down_too():
    store = fleet.cluster(2)
    writer = Memory(store)
    writer.before = lambda _, sent: sent.name == "node-1" and store.put(PODS, fleet.pod("daemon", "node-1"))
    scale_pool(writer, "node", 1)
    assert store.names(PODS) == []


@pytest.mark.usefixtures("in_order")
def test_a_shrinking_pool_loses_its_highest_number_first():
    store = fleet.cluster(4)
    writer = Memory(store)
    scale_pool(writer, "node", 1)
    gone = [sent.name for sent in writer.writes if sent.verb == "delete" and sent.resource is NODES]
    assert gone == ["node-3", "node-2", "node-1"]


def test_more_than_a_few_nodes_are_asked_for_pods_with_one_list():
    store = fleet.cluster(25, gpus=1, advertise=DEVICE_PLUGIN)
    store.put(PODS, fleet.pod("one", "node-20"))
    store.put(PODS, fleet.pod("elsewhere", "worker"))
    writer = Memory(store)
    delete_pool(writer, "node")
    assert store.names(PODS) == ["elsewhere"]
    assert sum(sent.resource is PODS and sent.verb == "list" for sent in writer.sent) == 2


def test_the_classes_of_others_stay_and_ours_go_with_the_last_pool_that_needs_them():
    store = Store()
    store.put(DEVICE_CLASSES, {"metadata": {"name": "mig.nvidia.com"}, "spec": {}})
    add_pool(Memory(store), "a", 1)
    add_pool(Memory(store), "b", 1, advertise=DEVICE_PLUGIN)
    delete_pool(Memory(store), "a")
    assert store.names(DEVICE_CLASSES) == ["mig.nvidia.com"]


def test_the_class_serves_nvidia_gpu_no_longer_when_the_last_dra_pool_goes():
    store = fleet.cluster(1, "a", advertise=DEVICE_PLUGIN)
    add_pool(Memory(store), "b", 1, advertise=DRA)
    assert store.one(DEVICE_CLASSES, "gpu.nvidia.com")["spec"]["extendedResourceName"] == "nvidia.com/gpu"
    add_pool(Memory(store), "b", advertise=DEVICE_PLUGIN)
    add_pool(Memory(store), "a", advertise=fleet.BOTH)
    assert "extendedResourceName" not in store.one(DEVICE_CLASSES, "gpu.nvidia.com")["spec"]


def test_the_class_follows_a_pool_from_one_way_to_the_other_and_back():
    store = fleet.cluster(1)
    assert "extendedResourceName" not in store.one(DEVICE_CLASSES, "gpu.nvidia.com")["spec"]
    add_pool(Memory(store), advertise=DRA)
    assert store.one(DEVICE_CLASSES, "gpu.nvidia.com")["spec"]["extendedResourceName"] == "nvidia.com/gpu"
    add_pool(Memory(store), advertise=fleet.BOTH)
    assert "extendedResourceName" not in store.one(DEVICE_CLASSES, "gpu.nvidia.com")["spec"]


def test_a_slice_of_others_on_a_node_that_goes_is_left_alone():
    store = fleet.cluster(2)
    theirs = {"metadata": {"name": "theirs"}, "spec": {"driver": "nic.example.com", "nodeName": "node-1"}}
    store.put(RESOURCE_SLICES, theirs)
    scale_pool(Memory(store), "node", 1)
    assert store.names(NODES) == ["node-0"]
    assert [item["metadata"]["name"] for item in fleet.slices_on(store, "node-1")] == ["theirs"]


def test_names_that_are_not_there_are_refused_or_ignored_as_asked():
    reader = Memory(fleet.cluster(1))
    with pytest.raises(GhostError, match='pool "b" not found') as refusal:
        select_pools(reader, ["node", "b"], [], everything=False, ignore_missing=False)
    assert refusal.value.hint == "Pools in this cluster: node."
    what = select_pools(reader, ["b"], [], everything=False, ignore_missing=True)
    assert (what.going, [pool.name for pool in what.staying]) == ([], ["node"])
    assert not what


def test_what_has_happened_is_told_with_every_object_by_name():
    store = fleet.cluster(1)
    writer = Memory(store)
    what = select_pools(writer, ["node"], [], everything=False, ignore_missing=False)
    told = [(change.verb.value, change.resource, change.name) for change in fleet.delete_pools(writer, what, [])]
    assert told[0] == ("deleted", RESOURCE_SLICES, "00000-gpu.nvidia.com-node-0-lnzgc")
    assert told[-1] == ("deleted", NODES, "node-0")
