"""Killed between any two writes: the same command finishes the work, and `sync` does what was declared."""

import pytest

from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import Taint
from tests.unit.operations import fleet
from tests.unit.operations.fleet import BOTH, DEVICE_PLUGIN, DRA, add_pool, delete_pool, run_sync, scale_pool, state
from tests.unit.operations.memory import Killed, Memory, Store

pytestmark = pytest.mark.usefixtures("order")
TAINTS = (Taint("k", "NoExecute", "v"),)


def with_pods():
    """Three nodes of eight GPUs; on the first two there are pods that four would not do for."""
    store = fleet.cluster(3)
    fleet.holding(store, "claims-low", "node-0", "gpu-1")
    fleet.holding(store, "claims-high", "node-0", "gpu-6")
    store.put(PODS, fleet.pod("old", "node-1", gpus=3))
    store.put(PODS, fleet.pod("young", "node-1", gpus=3))
    return store


def damaged():
    """A pool that lacks a node, a slice and a label, with a stray slice and pods that have no record."""
    store = with_pods()
    add_pool(Memory(store), "other", 2, gpus=2)
    for node_name in ("other-1", "node-1"):
        store.remove(RESOURCE_SLICES, fleet.slices_on(store, node_name)[0]["metadata"]["name"])
    store.remove(NODES, "other-1")
    store.edit(NODES, "node-0", lambda item: item["metadata"]["labels"].pop("nvidia.com/gpu.product"))
    store.edit(NODES, "node-2", lambda item: item["status"]["capacity"].update({"nvidia.com/gpu": "3"}))
    stray = fleet.slices_on(store, "node-2")[0]
    store.put(
        RESOURCE_SLICES,
        {**stray, "metadata": {**stray["metadata"], "name": "stray"}, "spec": {**stray["spec"], "nodeName": "gone-0"}},
    )
    return store


def three(**request):
    return lambda: fleet.cluster(3, **request)


GROWING = {
    "a new pool": (Store, add_pool),
    "a new pool of three": (Store, lambda writer: add_pool(writer, count=3)),
    "another model": (three(), lambda writer: add_pool(writer, model="t4")),
    "fewer GPUs": (three(), lambda writer: add_pool(writer, gpus=2)),
    "other labels, taints and zones": (
        three(labels=(("a", "1"),), zones=("z1",)),
        lambda writer: add_pool(writer, labels=(("b", "2"),), taints=TAINTS, zones=("z2", "z3")),
    ),
    "more nodes and another model": (three(), lambda writer: add_pool(writer, count=5, model="l4")),
    "both to dra": (three(), lambda writer: add_pool(writer, advertise=DRA)),
    "dra to device-plugin": (three(advertise=DRA), lambda writer: add_pool(writer, advertise=DEVICE_PLUGIN)),
    "device-plugin to both": (three(advertise=DEVICE_PLUGIN), lambda writer: add_pool(writer, advertise=BOTH)),
    "fewer GPUs by force": (with_pods, lambda writer: add_pool(writer, gpus=4, force=True)),
    "dra by force": (with_pods, lambda writer: add_pool(writer, advertise=DRA, force=True)),
    "another model by force": (with_pods, lambda writer: add_pool(writer, model="t4", force=True)),
    "scaling up": (three(), lambda writer: scale_pool(writer, "node", 5)),
}
SHRINKING = {
    "scaling down": (with_pods, lambda writer: scale_pool(writer, "node", 1)),
    "sync": (damaged, run_sync),
}
EVERY = {**GROWING, **SHRINKING}


def interrupted(prepare, run):
    """The store after each kill, with the number of the write that did not happen any more."""
    before = prepare()
    whole = Memory(before.copy())
    run(whole)
    assert whole.writes
    for number in range(1, len(whole.writes) + 1):
        store = before.copy()
        with pytest.raises(Killed):
            run(Memory(store).kill_before(number))
        yield store, f"killed before write {number}, {whole.writes[number - 1]}"


def outcome(prepare, run):
    """How it looks when nobody interrupts."""
    store = prepare()
    run(Memory(store))
    return state(store)


@pytest.mark.parametrize("name", EVERY)
def test_the_same_command_finishes_what_a_kill_left(name):
    prepare, run = EVERY[name]
    wanted = outcome(prepare, run)
    for store, when in interrupted(prepare, run):
        run(Memory(store))
        assert state(store) == wanted, when


@pytest.mark.parametrize("name", GROWING)
def test_sync_finishes_what_is_declared_when_a_pool_was_being_written(name):
    prepare, run = GROWING[name]
    wanted = outcome(prepare, run)
    untouched = prepare()
    run_sync(Memory(untouched))
    for store, when in interrupted(prepare, run):
        first = store.objects.get(("Node", "", "node-0"))
        begun = (
            first is not None
            and first["metadata"]["annotations"] == wanted[("Node", "", "node-0")]["metadata"]["annotations"]
        )
        pods = [item["metadata"]["name"] for item in store.all(PODS)]
        run_sync(Memory(store))
        expected = wanted if begun else state(untouched)
        found = state(store)
        # Pods are not sync's to delete: those that the kill left are there still.
        assert [item["metadata"]["name"] for item in store.all(PODS)] == pods, when
        assert _hardware(found) == _hardware(expected), when


def _hardware(found):
    return {key: value for key, value in found.items() if key[0] != "Pod"}


def two_pools():
    store = with_pods()
    add_pool(Memory(store), "other", 2, advertise=DEVICE_PLUGIN)
    return store


@pytest.mark.parametrize("prepare", [with_pods, two_pools])
def test_deleting_by_name_again_finishes_or_finds_nothing(prepare):
    def run(writer):
        delete_pool(writer, "node")

    wanted = outcome(prepare, run)
    for store, when in interrupted(prepare, run):
        if any(name.startswith("node-") for name in store.names(NODES)):
            run(Memory(store))
        else:
            with pytest.raises(GhostError, match='pool "node" not found'):
                run(Memory(store))
        # Slices whose node has gone are the garbage collector's, and sync's.
        for item in store.all(RESOURCE_SLICES):
            if item["metadata"]["ownerReferences"][0]["uid"] not in {n["metadata"]["uid"] for n in store.all(NODES)}:
                store.remove(RESOURCE_SLICES, item["metadata"]["name"])
        assert state(store) == wanted, when


def test_sync_finishes_a_deletion_that_has_been_declared():
    untouched = with_pods()
    run_sync(Memory(untouched))
    for store, when in interrupted(with_pods, delete_pool):
        begun = not store.all(NODES) or '"nodes":0' in str(store.all(NODES)[0]["metadata"]["annotations"])
        run_sync(Memory(store))
        assert begun == (fleet.ours(store) == []), when
        if not begun:
            assert _hardware(state(store)) == _hardware(state(untouched)), when


def test_sync_finishes_a_scale_down_that_has_been_declared():
    prepare, run = SHRINKING["scaling down"]
    wanted = outcome(prepare, run)
    for store, when in interrupted(prepare, run):
        begun = '"nodes":1' in str(store.all(NODES)[0]["metadata"]["annotations"])
        run_sync(Memory(store))
        assert (_hardware(state(store)) == _hardware(wanted)) == begun, when


def test_add_pool_does_not_make_a_scale_down_undone():
    prepare, run = SHRINKING["scaling down"]
    for store, _ in interrupted(prepare, run):
        size = len(store.all(NODES))
        if '"nodes":1' in str(store.all(NODES)[0]["metadata"]["annotations"]):
            warnings = add_pool(Memory(store))
            assert '"nodes":1' in str(store.all(NODES)[0]["metadata"]["annotations"])
            assert size == 1 or "is being shrunk to 1" in str(warnings)


def test_a_pool_whose_deletion_was_begun_comes_back_when_it_is_asked_for():
    before = with_pods()
    for store, _ in interrupted(with_pods, delete_pool):
        if store.all(NODES):
            add_pool(Memory(store), "node", len(before.all(NODES)))
            assert _hardware(state(store)) == _hardware(state(before))
