"""What follows from declarations beyond the nodes: sync finishes it, and nothing outlives a node."""

import pytest

from kubectl_ghost.cluster.resources import NAMESPACES, NODES, PODS, RESOURCE_CLAIMS
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.faults import Effect, Fault
from kubectl_ghost.domain.hardware import GpuState, Occupancy, OccupancyKind
from kubectl_ghost.operations.occupy import OccupyRequest, apply_occupy, plan_occupy
from kubectl_ghost.operations.reconcile import update_node
from kubectl_ghost.operations.selecting import Selection
from tests.unit.operations import fleet
from tests.unit.operations.fleet import BOTH, DEVICE_PLUGIN, run_sync
from tests.unit.operations.memory import Memory

pytestmark = pytest.mark.usefixtures("in_order")
SPACE = keys.FILLER_NAMESPACE


def declare(store, state, name="node-0", index=0):
    update_node(Memory(store), store.one(NODES, name), lambda old: old.with_gpu(index, state))


def fill(store):
    request = OccupyRequest(Selection(everything=True), kind=OccupancyKind.PODS)
    list(apply_occupy(Memory(store), plan_occupy(Memory(store), request)))


def fillers(store):
    return [item["metadata"]["name"] for item in store.all(PODS) if item["metadata"]["namespace"] == SPACE]


def test_a_pod_that_a_killed_fault_has_left_on_its_gpu_is_evicted():
    store = fleet.cluster(1, gpus=2, advertise=DEVICE_PLUGIN)
    for name in ("first", "second"):
        store.put(PODS, fleet.pod(name, "node-0", gpus=1))
    run_sync(Memory(store))
    declare(store, GpuState(faults=(Fault("xid", 79),)))
    run_sync(Memory(store))
    assert store.names(PODS) == ["second"]
    again = Memory(store)
    run_sync(again)
    assert again.writes == []


@pytest.mark.parametrize("fault", [Fault("xid", 31), Fault("xid", 79, effect=Effect.NO_SCHEDULE), Fault("thermal")])
def test_a_fault_that_evicts_nobody_leaves_its_pods_alone(fault):
    store = fleet.cluster(1, gpus=1, advertise=DEVICE_PLUGIN)
    store.put(PODS, fleet.pod("first", "node-0", gpus=1))
    run_sync(Memory(store))
    declare(store, GpuState(faults=(fault,)))
    run_sync(Memory(store))
    assert store.names(PODS) == ["first"]


def test_fillers_that_are_declared_are_made_and_others_go():
    store = fleet.cluster(2, gpus=2)
    declare(store, GpuState(occupancy=Occupancy(OccupancyKind.PODS, priority=3)), "node-1", 1)
    run_sync(Memory(store))
    assert fillers(store) == ["node-1-gpu-1"]
    assert store.all(PODS)[0]["spec"]["priorityClassName"] == f"{SPACE}-3"
    declare(store, GpuState(), "node-1", 1)
    run_sync(Memory(store))
    assert fillers(store) == []
    assert store.names(NAMESPACES) == []


@pytest.mark.parametrize("advertise", [BOTH, DEVICE_PLUGIN])
def test_what_kept_gpus_busy_goes_with_their_nodes(advertise):
    store = fleet.cluster(3, gpus=1, advertise=advertise)
    fill(store)
    fleet.scale_pool(Memory(store), "node", 1)
    assert fillers(store) == ["node-0-gpu-0"]
    assert len(store.all(RESOURCE_CLAIMS)) == (1 if advertise is BOTH else 0)
    fleet.delete_pool(Memory(store), "node")
    assert fillers(store) == []
    assert store.all(RESOURCE_CLAIMS) == []
    assert store.names(NAMESPACES) == []
