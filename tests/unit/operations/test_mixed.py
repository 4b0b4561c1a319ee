"""A cluster that real GPUs or many real nodes are in is refused, unless it is meant."""

import pytest

from kubectl_ghost.cluster.resources import NODES, RESOURCE_SLICES
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError
from tests.unit.operations import fleet
from tests.unit.operations.fleet import DEVICE_PLUGIN, add_pool, scale_pool
from tests.unit.operations.memory import Memory, Store

GPUS = {
    "label": {"labels": {"nvidia.com/gpu.present": "true"}},
    "capacity": {"capacity": {"nvidia.com/gpu": "1"}},
    "MIG capacity": {"capacity": {"cpu": "4", "nvidia.com/mig-1g.10gb": "7"}},
}


def with_slice(driver, **spec):
    """A real node, and a slice that a driver publishes."""
    store = Store()
    store.put(NODES, fleet.node("worker"))
    store.put(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": {"driver": driver, **spec}})
    return store


def refused(store, **arguments):
    writer = Memory(store)
    with pytest.raises(GhostError) as refusal:
        add_pool(writer, count=1, **arguments)
    assert "--allow-mixed" in refusal.value.hint
    assert writer.writes == []
    return refusal.value.message


def made(store, *name):
    """The nodes that add-pool has made: it was not refused."""
    writer = Memory(store)
    add_pool(writer, *name, count=1)
    return [sent.name for sent in writer.writes if sent.verb == "create" and sent.resource is NODES]


@pytest.mark.parametrize("gpus", GPUS.values(), ids=GPUS)
def test_a_real_node_with_gpus_is_refused(gpus):
    store = Store()
    store.put(NODES, fleet.node("harmless", capacity={"cpu": "4"}))
    store.put(NODES, fleet.node("worker", **gpus))
    assert 'real GPUs: node "worker"' in refused(store)


def test_a_real_node_whose_gpus_are_published_as_slices_alone_is_refused():
    assert 'real GPUs: node "worker"' in refused(with_slice(keys.GPU_DRIVER, nodeName="worker"))


@pytest.mark.parametrize("spec", [{"nodeName": "node-7"}, {"allNodes": True}])
def test_slices_of_other_nodes_make_no_real_gpus(spec):
    assert made(with_slice(keys.GPU_DRIVER, **spec)) == ["node-0"]


def test_slices_of_other_drivers_make_no_real_gpus():
    assert made(with_slice("nic.example.com", nodeName="worker")) == ["node-0"]


@pytest.mark.parametrize(
    "gpus", [{"capacity": {"nvidia.com/gpu": "0"}}, {"labels": {"nvidia.com/gpu.present": "false"}}]
)
def test_a_node_that_says_it_has_none_is_no_gpu_node(gpus):
    store = Store()
    store.put(NODES, fleet.node("worker", **gpus))
    assert made(store) == ["node-0"]


@pytest.mark.parametrize("gpus", GPUS.values(), ids=GPUS)
def test_a_simulated_node_of_others_is_none_either(gpus):
    store = Store()
    store.put(NODES, fleet.node("kwok-node", annotations=fleet.FAKE, **gpus))
    assert made(store) == ["node-0"]


@pytest.mark.parametrize(("real", "too_many"), [(10, False), (11, True)])
def test_ten_real_nodes_are_few(real, too_many):
    store = Store()
    for index in range(real):
        store.put(NODES, fleet.node(f"worker-{index}"))
    if too_many:
        assert refused(store) == "this cluster has 11 nodes that are not simulated"
    else:
        assert made(store) == ["node-0"]


def test_simulated_nodes_are_not_counted():
    store = fleet.cluster(12, gpus=1, advertise=DEVICE_PLUGIN)
    store.put(NODES, fleet.node("worker"))
    assert made(store, "more") == ["more-0"]


def test_scaling_is_refused_as_well():
    store = fleet.cluster(1)
    store.put(NODES, fleet.node("worker", **GPUS["label"]))
    writer = Memory(store)
    with pytest.raises(GhostError, match="real GPUs"):
        scale_pool(writer, "node", 2)
    assert writer.writes == []


def test_where_it_is_meant_the_nodes_are_tainted_and_the_real_ones_left_alone():
    store = Store()
    store.put(NODES, fleet.node("worker", **GPUS["capacity"]))
    before = store.one(NODES, "worker")
    add_pool(Memory(store), count=1, allow_mixed=True)
    assert store.one(NODES, "worker") == before
    assert store.one(NODES, "node-0")["spec"]["taints"][0]["key"] == keys.KWOK_NODE_KEY


def test_in_a_cluster_made_for_simulation_plain_pods_may_land():
    assert "taints" not in fleet.cluster(1).one(NODES, "node-0")["spec"]
