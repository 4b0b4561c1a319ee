"""`sync`: what is declared comes back, what belongs to no node goes, and what pods have is written down once."""

import pytest

from kubectl_ghost.cluster.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import TaintMode
from tests.unit.operations import fleet
from tests.unit.operations.fleet import DEVICE_PLUGIN, DRA, add_pool, run_sync, state
from tests.unit.operations.memory import Killed, Memory, Store


def stray(store, name, node_name, *, labels=None):
    """A slice like those of node-0, on another node."""
    item = fleet.slices_on(store, "node-0")[0]
    metadata = {"name": name, "labels": item["metadata"]["labels"] if labels is None else labels}
    store.put(RESOURCE_SLICES, {"metadata": metadata, "spec": {**item["spec"], "nodeName": node_name}})


def record(store, name):
    return (store.objects[("Pod", "default", name)]["metadata"].get("annotations") or {}).get(keys.GPUS_ANNOTATION)


def test_a_slice_of_ours_on_no_node_of_ours_goes():
    store = fleet.cluster(1)
    before = state(store)
    stray(store, "stray", "node-9")
    stray(store, "on-a-node-of-others", "theirs")
    store.put(NODES, fleet.node("theirs", annotations=fleet.FAKE))
    run_sync(Memory(store))
    store.remove(NODES, "theirs")
    assert state(store) == before


def test_a_second_slice_of_ours_on_a_node_of_ours_goes():
    store = fleet.cluster(1)
    before = state(store)
    stray(store, "second", "node-0")
    run_sync(Memory(store))
    assert state(store) == before


@pytest.mark.parametrize("node_name", ["node-0", "node-9"])
def test_slices_of_others_stay(node_name):
    store = fleet.cluster(1)
    stray(store, "theirs", node_name, labels={"app.kubernetes.io/managed-by": "another"})
    run_sync(Memory(store))
    assert "theirs" in store.names(RESOURCE_SLICES)


def test_a_slice_that_somebody_deleted_comes_back():
    store = fleet.cluster(2)
    before = state(store)
    store.remove(RESOURCE_SLICES, fleet.slices_on(store, "node-1")[0]["metadata"]["name"])
    run_sync(Memory(store))
    assert state(store) == before


def test_a_slice_that_somebody_emptied_is_filled_again():
    store = fleet.cluster(2)
    before = state(store)
    name = fleet.slices_on(store, "node-1")[0]["metadata"]["name"]
    store.edit(RESOURCE_SLICES, name, lambda item: item["spec"].update(devices=[]))
    run_sync(Memory(store))
    assert state(store) == before


@pytest.mark.parametrize("index", [1, 2])
def test_a_node_that_somebody_deleted_is_made_again(index):
    store = fleet.cluster(3, zones=("a", "b"), model="l4")
    before = state(store)
    for item in fleet.slices_on(store, f"node-{index}"):
        store.remove(RESOURCE_SLICES, item["metadata"]["name"])
    store.remove(NODES, f"node-{index}")
    run_sync(Memory(store))
    assert state(store) == before


def test_where_the_first_node_is_gone_the_next_speaks_for_the_pool():
    store = fleet.cluster(3, model="l4")
    for item in fleet.slices_on(store, "node-0"):
        store.remove(RESOURCE_SLICES, item["metadata"]["name"])
    store.remove(NODES, "node-0")
    run_sync(Memory(store))
    assert store.names(NODES) == ["node-0", "node-1", "node-2"]
    assert [fleet.settings(store, name).model for name in store.names(NODES)] == ["l4"] * 3


def test_the_device_classes_come_back_and_go_with_the_pools_that_need_them():
    store = fleet.cluster(1, advertise=DRA)
    before = state(store)
    store.remove(DEVICE_CLASSES, "gpu.nvidia.com")
    store.edit(DEVICE_CLASSES, "mig.nvidia.com", lambda item: item["spec"].update(selectors=[]))
    run_sync(Memory(store))
    assert state(store) == before
    store.remove(NODES, "node-0")
    run_sync(Memory(store))
    assert store.objects == {}


def test_a_pool_of_taint_auto_is_tainted_once_a_real_node_joins():
    store = Store()
    add_pool(Memory(store), "auto", 2)
    add_pool(Memory(store), "never", 1, taint=TaintMode.NEVER)
    store.put(NODES, fleet.node("worker"))
    run_sync(Memory(store))
    tainted = {item["metadata"]["name"]: bool(item["spec"].get("taints")) for item in store.all(NODES)}
    assert tainted == {"auto-0": True, "auto-1": True, "never-0": False, "worker": False}


def test_the_gpus_of_device_plugin_pods_are_recorded_oldest_first():
    store = fleet.cluster(1)
    store.put(PODS, fleet.pod("z-old", "node-0", gpus=3))
    store.put(PODS, fleet.pod("a-young", "node-0", gpus=2))
    run_sync(Memory(store))
    assert record(store, "z-old") == "gpu-0,gpu-1,gpu-2"
    assert record(store, "a-young") == "gpu-3,gpu-4"


def test_what_is_recorded_stands_when_an_older_pod_has_gone():
    store = fleet.cluster(1)
    for name in ("old", "young"):
        store.put(PODS, fleet.pod(name, "node-0", gpus=2))
    run_sync(Memory(store))
    store.remove(PODS, "old")
    writer = Memory(store)
    run_sync(writer)
    assert record(store, "young") == "gpu-2,gpu-3"
    assert writer.writes == []


def test_only_pods_that_hold_capacity_of_ours_are_recorded():
    store = fleet.cluster(1)
    add_pool(Memory(store), "plugin", 1, advertise=DEVICE_PLUGIN)
    store.put(NODES, fleet.node("worker"))
    store.put(PODS, fleet.pod("without", "node-0"))
    store.put(PODS, fleet.pod("unbound", gpus=1, phase="Pending"))
    store.put(PODS, fleet.pod("elsewhere", "worker", gpus=1))
    store.put(PODS, fleet.pod("ended", "node-0", gpus=1, phase="Succeeded"))
    store.put(PODS, fleet.pod("asking", "plugin-0", gpus=1))
    run_sync(Memory(store))
    assert [name for name in store.names(PODS) if record(store, name)] == ["asking"]


def test_on_nodes_that_offer_claims_alone_nothing_is_recorded():
    store = fleet.cluster(1, advertise=DRA)
    store.put(PODS, fleet.pod("served", "node-0", gpus=1))
    run_sync(Memory(store))
    assert record(store, "served") is None


@pytest.mark.parametrize("change", [lambda store: store.remove(PODS, "old"), lambda store: touch(store, "old")])
def test_a_pod_that_vanishes_or_changes_just_then_is_skipped(change):
    store = fleet.cluster(1)
    for name in ("old", "young"):
        store.put(PODS, fleet.pod(name, "node-0", gpus=1))
    writer = Memory(store)
    writer.before = lambda _, sent: sent.name == "old" and change(store)
    changes = [item.name for item in run_sync(writer) if item.resource is PODS]
    assert changes == ["young"]
    assert record(store, "young") == "gpu-1"


def touch(store, name):
    store.edit(PODS, name, lambda item: item["status"].update(message="changed"))


def half_shrunk():
    """A change to four GPUs that was killed after the first of two nodes."""
    store = fleet.cluster(2)
    with pytest.raises(Killed):
        add_pool(Memory(store).kill_before(4), gpus=4)
    assert [fleet.settings(store, name).gpus for name in store.names(NODES)] == [4, 8]
    return store


def test_finishing_a_change_is_refused_while_it_would_take_gpus_from_pods():
    store = half_shrunk()
    fleet.holding(store, "training", "node-1", "gpu-6")
    writer = Memory(store)
    with pytest.raises(GhostError, match="hold GPUs that would be gone: default/training") as refusal:
        run_sync(writer)
    assert "--force" in refusal.value.hint
    assert writer.writes == []


def test_finishing_a_change_goes_on_where_the_pods_keep_their_gpus():
    store = half_shrunk()
    fleet.holding(store, "training", "node-1", "gpu-3")
    run_sync(Memory(store))
    assert [fleet.settings(store, name).gpus for name in store.names(NODES)] == [4, 4]


def test_a_slice_that_outlived_its_node_is_adopted_by_the_node_that_comes_back():
    store = fleet.cluster(3)
    before = state(store)
    store.remove(NODES, "node-1")
    run_sync(Memory(store))
    assert state(store) == before


def test_a_node_that_is_missing_gets_the_settings_that_the_pool_has_by_then():
    store = fleet.cluster(3)
    store.remove(NODES, "node-1")
    store.remove(RESOURCE_SLICES, fleet.slices_on(store, "node-1")[0]["metadata"]["name"])
    writer = Memory(store)

    def meanwhile(number, _):
        if number == 1:
            add_pool(Memory(store), model="t4")

    writer.before = meanwhile
    run_sync(writer)
    products = {
        item["metadata"]["labels"]["nvidia.com/gpu.product"]
        for (kind, _, _), item in store.objects.items()
        if kind == "Node"
    }
    assert products == {"Tesla-T4"}


def test_the_size_of_a_pool_survives_its_first_node():
    store = fleet.cluster(3)
    before = state(store)
    store.remove(NODES, "node-0")
    run_sync(Memory(store))
    store.remove(NODES, "node-2")
    run_sync(Memory(store))
    assert state(store) == before


def test_a_node_that_lost_kwoks_mark_is_left_alone_and_named():
    store = fleet.cluster(3)
    store.edit(NODES, "node-1", lambda item: item["metadata"]["annotations"].pop("kwok.x-k8s.io/node"))
    before = store.one(NODES, "node-0")["metadata"]["resourceVersion"]
    with pytest.raises(GhostError, match="has lost the annotation"):
        run_sync(Memory(store))
    # It is nobody's real hardware: the others do not get kwok's taint for it.
    assert store.one(NODES, "node-0")["metadata"]["resourceVersion"] == before
    assert "has lost the annotation" in str(add_pool(Memory(store), "other", 1))
    assert "has lost the annotation" in str(fleet.delete_pool(Memory(store), "other"))


def test_a_node_that_is_being_deleted_is_not_written_to():
    store = fleet.cluster(2)
    store.edit(NODES, "node-1", lambda item: item["metadata"].update(deletionTimestamp="now", finalizers=["a/b"]))
    writer = Memory(store)
    for run in (run_sync, add_pool):
        with pytest.raises(GhostError, match=r'node "node-1" is being deleted \(finalizers: a/b\)'):
            run(writer)
    assert writer.writes == []
