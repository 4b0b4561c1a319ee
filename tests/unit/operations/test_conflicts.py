"""Somebody else writes in between: nothing of theirs is lost, and what was asked for is applied."""

import pytest

from kubectl_ghost.cluster.errors import Conflict
from kubectl_ghost.cluster.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.domain.errors import GhostError
from tests.unit.operations import fleet
from tests.unit.operations.fleet import BOTH, DEVICE_PLUGIN, DRA, add_pool, run_sync, scale_pool, state
from tests.unit.operations.memory import Memory, Store
from tests.unit.operations.test_kill import EVERY

pytestmark = pytest.mark.usefixtures("in_order")
CHANGING = ["another model", "fewer GPUs", "other labels, taints and zones", "both to dra", "dra to device-plugin"]


def label(item):
    item["metadata"].setdefault("labels", {})["theirs"] = "1"


@pytest.mark.parametrize("name", [*CHANGING, "scaling up", "sync"])
def test_a_label_set_before_any_write_stays_and_so_does_what_was_asked_for(name):
    prepare, run = EVERY[name]
    before = prepare()
    whole = Memory(before.copy())
    run(whole)
    wanted = state(whole.store)
    for number, write in enumerate(whole.writes, 1):
        store = before.copy()
        writer = Memory(store)
        touched = store.key(write.resource, write.name)

        def theirs(current, sent, number=number, store=store):
            if current == number and store.key(sent.resource, sent.name) in store.objects:
                store.edit(sent.resource, sent.name, label)

        writer.before = theirs
        run(writer)
        if write.resource is PODS:
            # A pod that changes just now is recorded the next time.
            run(Memory(store))
        found = {key: {**item, "metadata": dict(item["metadata"])} for key, item in state(store).items()}
        for key, item in found.items():
            labels = dict(item["metadata"].get("labels", {}))
            assert (labels.pop("theirs", None) == "1") is (key == touched and touched in before.objects), write
            item["metadata"]["labels"] = labels
        assert found == {
            key: {**item, "metadata": {**item["metadata"], "labels": item["metadata"].get("labels", {})}}
            for key, item in wanted.items()
        }, write


@pytest.mark.parametrize("name", CHANGING)
def test_somebody_who_writes_before_each_of_several_attempts_does_not_win(name):
    prepare, run = EVERY[name]
    store = prepare()
    writer = Memory(store)
    times = {}

    def theirs(_, sent):
        key = store.key(sent.resource, sent.name)
        times[key] = times.get(key, 0) + 1
        if times[key] <= 3 and key in store.objects:
            store.edit(sent.resource, sent.name, lambda item: item["metadata"]["labels"].update(n=str(times[key])))

    writer.before = theirs
    run(writer)
    again = Memory(store)
    run(again)
    assert again.writes == []
    assert max(times.values()) > 3


def test_somebody_who_never_stops_is_told_of_as_a_conflict():
    writer = Memory(fleet.cluster(1))
    writer.before = lambda number, _: writer.store.edit(
        NODES, "node-0", lambda item: item["metadata"]["labels"].update(n=str(number))
    )
    with pytest.raises(Conflict):
        add_pool(writer, model="t4")


def test_a_slice_of_others_is_left_alone_when_a_node_is_read_again():
    store = fleet.cluster(1)
    theirs = {"metadata": {"name": "theirs"}, "spec": {"driver": "nic.example.com", "nodeName": "node-0"}}
    store.put(RESOURCE_SLICES, theirs)
    writer = Memory(store)
    writer.before = lambda number, _: number == 1 and store.edit(NODES, "node-0", label)
    add_pool(writer, model="t4")
    assert fleet.settings(store, "node-0").model == "t4"
    assert "theirs" in store.names(RESOURCE_SLICES)


SETTINGS = {
    "model": {"model": "t4"},
    "gpus": {"gpus": 2},
    "way": {"advertise": DEVICE_PLUGIN},
    "zones": {"zones": ("z",)},
}


@pytest.mark.parametrize("change", SETTINGS.values(), ids=SETTINGS)
def test_sync_does_not_revert_what_add_pool_changes_meanwhile(change):
    def damaged():
        store = fleet.cluster(4)
        for name in store.names(NODES):
            store.edit(NODES, name, lambda item: item["metadata"]["labels"].pop("nvidia.com/gpu.product"))
        return store

    whole = Memory(damaged())
    run_sync(whole)
    wanted = damaged()
    add_pool(Memory(wanted), **change)
    for number, write in enumerate(whole.writes, 1):
        store = damaged()
        writer = Memory(store)

        def meanwhile(current, _, number=number, store=store):
            if current == number:
                add_pool(Memory(store), **change)

        writer.before = meanwhile
        run_sync(writer)
        assert state(store) == state(wanted), write


@pytest.mark.parametrize("advertise", [BOTH, DRA])
def test_two_that_create_the_device_classes_at_once_both_go_on(advertise):
    for number in (1, 2):
        store = Store()
        writer = Memory(store)

        def meanwhile(current, _, number=number, store=store):
            if current == number:
                add_pool(Memory(store), "other", 1, advertise=advertise)

        writer.before = meanwhile
        add_pool(writer, count=2, advertise=advertise)
        alone = fleet.cluster(1, "other", advertise=advertise)
        add_pool(Memory(alone), count=2, advertise=advertise)
        assert state(store) == state(alone)


def test_a_device_class_that_somebody_else_creates_meanwhile_is_left_as_it_is():
    store = Store()
    theirs = {"metadata": {"name": "gpu.nvidia.com"}, "spec": {"selectors": []}}
    writer = Memory(store)
    writer.before = lambda number, _: number == 1 and store.put(DEVICE_CLASSES, theirs)
    add_pool(writer, count=1)
    assert store.one(DEVICE_CLASSES, "gpu.nvidia.com")["spec"] == {"selectors": []}
    fleet.delete_pool(Memory(store), "node")
    assert store.names(DEVICE_CLASSES) == ["gpu.nvidia.com"]


def test_a_node_of_ours_that_turns_up_while_it_is_being_created_gets_these_settings():
    store = fleet.cluster(1)
    writer = Memory(store)
    writer.before = lambda _, sent: (
        sent.verb == "create" and sent.name == "node-1" and scale_pool(Memory(store), "node", 2)
    )
    add_pool(writer, count=2, model="t4")
    assert [fleet.settings(store, name).model for name in store.names(NODES)] == ["t4"] * 2
    assert len(fleet.slices_on(store, "node-1")) == 1


def test_a_node_of_somebody_else_that_turns_up_meanwhile_is_refused_and_left_alone():
    store = Store()
    writer = Memory(store)
    writer.before = lambda _, sent: (
        sent.verb == "create" and sent.name == "node-1" and store.put(NODES, fleet.node("node-1"))
    )
    with pytest.raises(GhostError, match="not managed by kubectl-ghost"):
        add_pool(writer, count=2)
    assert store.one(NODES, "node-1")["metadata"]["labels"] == {}


def test_a_slice_left_by_a_former_node_of_that_name_gets_the_new_owner():
    store = fleet.cluster(1)
    leftover = fleet.slices_on(store, "node-0")[0]
    store.remove(NODES, "node-0")
    add_pool(Memory(store), count=1)
    (adopted,) = fleet.slices_on(store, "node-0")
    assert adopted["metadata"]["uid"] == leftover["metadata"]["uid"]
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == store.one(NODES, "node-0")["metadata"]["uid"]


def test_such_a_slice_is_made_anew_if_the_garbage_collector_takes_it_first():
    store = fleet.cluster(1)
    name = fleet.slices_on(store, "node-0")[0]["metadata"]["name"]
    store.remove(NODES, "node-0")
    writer = Memory(store)
    writer.before = lambda _, sent: sent.verb == "replace" and store.remove(RESOURCE_SLICES, name)
    add_pool(writer, count=1)
    assert [item["metadata"]["name"] for item in fleet.slices_on(store, "node-0")] == [name]


def test_a_slice_of_that_name_without_our_label_is_refused():
    store = fleet.cluster(1)
    name = fleet.slices_on(store, "node-0")[0]["metadata"]["name"]
    store.edit(RESOURCE_SLICES, name, lambda item: item["metadata"].update(labels={}))
    with pytest.raises(GhostError, match="does not carry the label"):
        run_sync(Memory(store))
