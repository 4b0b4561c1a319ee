"""Nodes that were given GPUs and go back to their owners: exactly as they were, whatever came in between."""

import pytest

from kubectl_ghost.cluster.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.operations.adoption import release
from kubectl_ghost.operations.fleet import hardware_of
from tests.unit.operations import fleet
from tests.unit.operations.autoscaler import LABEL, adopt, adopted_cluster, broken, cluster, live, theirs, worker
from tests.unit.operations.fleet import add_pool, delete_pool, run_sync, scale_pool, slices_on, state
from tests.unit.operations.memory import Killed, Memory

pytestmark = pytest.mark.usefixtures("order")


def deletions():
    return {
        "by its name": ([], lambda writer: delete_pool(writer, "gpu")),
        "all": ([], delete_pool),
        "broken": ([broken], lambda writer: delete_pool(writer, "gpu")),
        "with a pool of one node": ([lambda store: scale_pool(Memory(store), "gpu", 1)], delete_pool),
    }


@pytest.mark.parametrize("name", deletions())
def test_the_pools_deletion_gives_them_back_exactly_as_they_were(name):
    prepare, run = deletions()[name]
    store = cluster()
    before = theirs(store)
    adopt(Memory(store))
    for step in prepare:
        step(store)
    assert theirs(store) != before
    run(Memory(store))
    assert theirs(store) == before
    assert store.all(RESOURCE_SLICES) == store.all(DEVICE_CLASSES) == []


def with_pods():
    """An adopted node with a pod that holds a GPU by a claim, one by count, and one that holds nothing."""
    store = adopted_cluster()
    fleet.holding(store, "claims", "worker-0", "gpu-0")
    store.put(PODS, fleet.pod("counts", "worker-b", gpus=1))
    store.put(PODS, fleet.pod("plain", "worker-0"))
    return store


@pytest.mark.parametrize("size", [1, 2])
def test_killed_between_any_two_writes_of_giving_back_the_same_command_or_sync_finishes(size):
    before = with_pods()
    broken(before)
    scale_pool(Memory(before), "gpu", size)
    whole = Memory(before.copy())
    delete_pool(whole, "gpu")
    wanted = state(whole.store)
    assert whole.store.names(PODS) == ["plain"]
    for finish in (lambda writer: delete_pool(writer, "gpu"), run_sync):
        for number in range(1, len(whole.writes) + 1):
            store = before.copy()
            with pytest.raises(Killed):
                delete_pool(Memory(store).kill_before(number), "gpu")
            if number == 1 and finish is run_sync:
                continue
            finish(Memory(store))
            assert state(store) == wanted, number


def test_pods_that_hold_their_gpus_go_and_no_others():
    store = with_pods()
    delete_pool(Memory(store), "gpu")
    assert store.names(PODS) == ["plain"]


def test_what_others_set_meanwhile_stays():
    store = adopted_cluster()
    store.edit(NODES, "worker-0", lambda item: item["metadata"]["labels"].update({"nvidia.com/their": "s", "c": "d"}))
    delete_pool(Memory(store), "gpu")
    assert live(store)["metadata"]["labels"] == {**LABEL, "nvidia.com/their": "s", "c": "d"}


def test_a_node_whose_declaration_is_damaged_is_given_back_all_the_same():
    store = cluster()
    before = theirs(store)
    adopt(Memory(store))
    store.edit(NODES, "worker-0", lambda item: item["metadata"]["annotations"].update({keys.HARDWARE_ANNOTATION: "{"}))
    with pytest.raises(GhostError, match='annotation of node "worker-0" cannot be read') as problem:
        run_sync(Memory(store))
    assert problem.value.hint.endswith("delete-pool gpu")
    delete_pool(Memory(store), "gpu")
    assert theirs(store) == before


def test_what_outlives_its_pool_is_kept_and_given_back_by_the_pools_name():
    store = cluster()
    before = theirs(store)
    adopt(Memory(store))
    for name in ("gpu-0", "gpu-1"):
        store.remove(NODES, name)
    run_sync(Memory(store))
    assert len(slices_on(store, "worker-0")) == 1
    assert store.names(DEVICE_CLASSES) == ["gpu.nvidia.com", "mig.nvidia.com"]
    with pytest.raises(GhostError, match='pool "other" not found'):
        delete_pool(Memory(store), "other")
    delete_pool(Memory(store), "gpu")
    assert theirs(store) == before


def test_another_pools_deletion_leaves_them():
    store = adopted_cluster()
    add_pool(Memory(store), "other", 1)
    before = theirs(store)
    delete_pool(Memory(store), "other")
    assert theirs(store) == before


def test_a_name_like_a_pools_own_makes_it_no_node_of_that_pool():
    store = adopted_cluster(worker("gpu-7"), worker("free-3"))
    add_pool(Memory(store), "free", 1)
    run_sync(Memory(store))
    assert sorted(store.names(NODES)) == ["free-0", "free-3", "gpu-0", "gpu-1", "gpu-7", "real"]
    assert hardware_of(live(store, "free-3")).settings.name == "gpu"
    delete_pool(Memory(store), "free")
    assert hardware_of(live(store, "free-3")).settings.name == "gpu"
    delete_pool(Memory(store))
    assert sorted(store.names(NODES)) == ["free-3", "gpu-7", "real"]


def test_one_that_is_given_back_while_sync_repairs_it_stays_given_back():
    store = cluster()
    before = theirs(store)
    adopt(Memory(store))
    for name in ("worker-0", "worker-b"):
        store.edit(NODES, name, lambda item: item["metadata"]["labels"].pop("nvidia.com/gpu.count"))
    writer = Memory(store)
    writer.before = lambda number, _: number == 1 and list(release(Memory(store), ["gpu"]))
    run_sync(writer)
    assert theirs(store) == before
    assert not slices_on(store, "worker-0")


def test_others_may_write_to_it_while_it_is_given_back():
    store = cluster()
    before = theirs(store)
    adopt(Memory(store))
    writer, touched = Memory(store), []

    def touch(_, sent):
        if sent.verb == "patch" and sent.name.startswith("worker") and touched.count(sent.name) < 2:
            touched.append(sent.name)
            store.edit(NODES, sent.name, lambda item: item["metadata"]["annotations"].update({"beat": "x"}))

    writer.before = touch
    delete_pool(writer, "gpu")
    for name in touched:
        store.edit(NODES, name, lambda item: item["metadata"]["annotations"].pop("beat", None))
    assert theirs(store) == before


def test_with_all_pools_one_whose_label_has_been_taken_off_is_given_back_too():
    store = cluster()
    before = theirs(store)
    adopt(Memory(store))
    store.edit(NODES, "worker-0", lambda item: item["metadata"]["labels"].pop(keys.TEMPLATE_LABEL))
    delete_pool(Memory(store))
    assert theirs(store) == before


def test_one_that_has_outlived_its_pool_keeps_the_device_classes():
    store = adopted_cluster()
    add_pool(Memory(store), "other", 1)
    for name in ("gpu-0", "gpu-1"):
        store.remove(NODES, name)
    delete_pool(Memory(store), "other")
    assert store.names(DEVICE_CLASSES) == ["gpu.nvidia.com", "mig.nvidia.com"]
