"""What pools there are: read off the nodes' names, and the lowest number speaks."""

from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.operations.fleet import pools_of
from tests.unit.operations import fleet
from tests.unit.operations.fleet import add_pool, holding, run_sync
from tests.unit.operations.memory import Memory


def pool(store):
    (found,) = pools_of(store.all(NODES)).values()
    return found


def without(store, *names):
    for name in names:
        store.remove(NODES, name)
    return store


def test_nodes_are_in_the_order_of_their_numbers_and_not_of_their_names():
    store = fleet.cluster(12, gpus=1)
    assert store.names(NODES)[1:4] == ["node-1", "node-10", "node-11"]
    assert list(pool(store).nodes) == list(range(12))


def test_the_lowest_number_speaks_for_the_pool():
    store = without(fleet.cluster(11, gpus=1), "node-0", "node-1")
    assert pool(store).first["metadata"]["name"] == "node-2"


def test_the_size_is_what_is_declared():
    assert pool(without(fleet.cluster(5, gpus=1), "node-3", "node-4")).size == 5


def test_but_never_less_than_the_highest_number_needs():
    assert pool(without(fleet.cluster(5, gpus=1), "node-0", "node-2")).size == 5


def test_a_gap_is_filled_without_the_node_that_says_the_size():
    store = without(fleet.cluster(5, gpus=1, advertise=fleet.DEVICE_PLUGIN), "node-0", "node-2", "node-3")
    run_sync(Memory(store))
    assert list(pool(store).nodes) == [0, 1, 2, 3, 4]


def test_pools_are_sorted_by_name():
    store = fleet.cluster(1, "b")
    for name in ("c", "a"):
        fleet.add_pool(Memory(store), name, 1)
    assert list(pools_of(store.all(NODES))) == ["a", "b", "c"]


def test_a_pod_that_comes_back_by_the_old_slices_is_evicted_until_none_does():
    store = fleet.cluster(1)
    writer = Memory(store)
    names = iter(["one", "two", "three"])

    def comes_back(_, sent):
        if sent.verb == "list" and sent.resource is PODS and (name := next(names, None)):
            holding(store, name, "node-0", "gpu-7")

    writer.before_any = comes_back
    add_pool(writer, gpus=4, force=True)
    assert store.names(PODS) == []
