"""What follows from declarations beyond the nodes: sync finishes it, and nothing outlives a node."""

from datetime import UTC, datetime, timedelta

import pytest

from kubectl_ghost.cluster.resources import EVENTS, NAMESPACES, NODES, PODS, RESOURCE_CLAIMS
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.faults import Effect, Fault, Reactor
from kubectl_ghost.domain.hardware import GpuState, Occupancy, OccupancyKind
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations import clock
from kubectl_ghost.operations.fault import FaultRequest
from kubectl_ghost.operations.occupy import OccupyRequest, apply_occupy, plan_occupy
from kubectl_ghost.operations.reconcile import update_node
from tests.unit.operations import fleet
from tests.unit.operations.faults import XID79, fault
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


def recorded(store, name, device):
    """A pod of the device-plugin path, with the record of the GPU that it has."""
    item = fleet.pod(name, "node-0", gpus=1)
    item["metadata"]["annotations"] = {keys.GPUS_ANNOTATION: device}
    store.put(PODS, item)


def test_a_fault_that_is_cleared_while_sync_runs_evicts_nobody_from_the_healthy_gpu():
    def scene():
        store = fleet.cluster(1, gpus=1, advertise=DEVICE_PLUGIN)
        store.put(PODS, fleet.pod("first", "node-0", gpus=1))
        run_sync(Memory(store))
        declare(store, GpuState(faults=(Fault("xid", 79),)))
        return store

    store = scene()
    whole = Memory(store)
    run_sync(whole)
    assert store.names(PODS) == []
    for moment in range(1, len(whole.sent) + 1):
        store = scene()
        memory = Memory(store)

        def clear(number, _, moment=moment, store=store):
            if number == moment and "first" in store.names(PODS):
                store.remove(PODS, "first")
                declare(store, GpuState())
                recorded(store, "next", "gpu-0")

        memory.before_any = clear
        run_sync(memory)
        assert store.names(PODS) in (["next"], []), moment
        gone = [sent.name for sent in memory.writes if sent.verb == "delete"]
        assert "next" not in gone, f"cleared before request {moment}, {whole.sent[moment - 1]}"


def test_only_gpus_that_the_device_plugin_gives_to_nobody_are_taken_from_its_pods_again():
    store = fleet.cluster(1, gpus=2, advertise=BOTH)
    recorded(store, "tainted", "gpu-0")
    recorded(store, "broken", "gpu-1")
    declare(store, GpuState(faults=(Fault("xid", 79, (Reactor.DRA,), Effect.NO_EXECUTE),)))
    declare(store, GpuState(faults=(Fault("xid", 79),)), index=1)
    run_sync(Memory(store))
    assert store.names(PODS) == ["tainted"]


def test_a_filler_stays_on_a_gpu_that_breaks():
    store = fleet.cluster(1, gpus=1, advertise=DEVICE_PLUGIN)
    fill(store)
    (name,) = fillers(store)
    store.edit(PODS, name, lambda item: item["spec"].update(nodeName="node-0"), SPACE)
    store.edit(PODS, name, lambda item: item.update(status={"phase": "Running"}), SPACE)
    for _ in range(2):
        fault(Memory(store), "node-0", request=XID79)
        fault(Memory(store), "node-0", request=FaultRequest("xid", 13))
        assert [item["status"] for item in store.all(PODS)] == [{"phase": "Running"}]
        run_sync(Memory(store))
        again = Memory(store)
        run_sync(again)
        assert again.writes == []
    assert fillers(store) == [name]


def test_a_pod_that_is_going_already_is_not_deleted_again():
    store = fleet.cluster(1, gpus=1, advertise=DEVICE_PLUGIN)
    store.put(PODS, {**fleet.pod("slow", "node-0", gpus=1)})
    store.edit(PODS, "slow", lambda item: item["metadata"].update(finalizers=["example.com/slow"]))
    fault(Memory(store), "node-0", request=XID79)
    memory = Memory(store)
    assert not any(change.resource is PODS for change in run_sync(memory))
    assert memory.writes == []
    _, changes, leaving = fault(memory, "node-0", request=XID79)
    assert not any(change.resource is PODS for change in changes)
    assert list(leaving.values()) == [("default", "slow")]


def test_a_pod_that_got_a_tainted_gpu_from_the_device_plugin_keeps_it():
    """The device plugin knows no device taints, so that a ReplicaSet's pod would be evicted for ever."""
    store = fleet.cluster(1, gpus=1, advertise=BOTH)
    store.put(PODS, fleet.pod("first", "node-0", gpus=1))
    memory = Memory(store)

    def replace(_, sent):
        if (sent.verb, sent.name) == ("delete", "first"):
            store.put(PODS, fleet.pod("next", "node-0", gpus=1))

    memory.before = replace
    fault(memory, "node-0", request=FaultRequest("xid", 79, reactors=(Reactor.DRA,), effect=Effect.NO_EXECUTE))
    assert store.names(PODS) == ["next"]
    run_sync(Memory(store))
    again = Memory(store)
    run_sync(again)
    assert again.writes == []
    assert store.names(PODS) == ["next"]


@pytest.mark.parametrize("gpus", [1, 30])
def test_an_event_that_a_killed_fault_has_not_written_is_written_by_sync_if_it_is_young(gpus):
    for minutes, count in ((4, gpus), (6, 0)):
        store = fleet.cluster(1, gpus=gpus)
        since = clock.stamp(datetime.now(UTC) - timedelta(minutes=minutes))
        for index in range(gpus):
            declare(store, GpuState(faults=(Fault("thermal", since=since),)), index=index)
        run_sync(Memory(store))
        assert [item["lastTimestamp"] for item in store.all(EVENTS)] == [since] * count
        again = Memory(store)
        run_sync(again)
        assert again.writes == []


@pytest.mark.parametrize("found", [Fault("xid", 31), Fault("xid", 79, effect=Effect.NO_SCHEDULE), Fault("thermal")])
def test_a_fault_that_evicts_nobody_leaves_its_pods_alone(found):
    store = fleet.cluster(1, gpus=1, advertise=DEVICE_PLUGIN)
    store.put(PODS, fleet.pod("first", "node-0", gpus=1))
    run_sync(Memory(store))
    declare(store, GpuState(faults=(found,)))
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


@pytest.mark.parametrize(
    ("request_", "left"),
    [
        ({"model": "b200"}, ["node-0-gpu-0", "node-0-gpu-1"]),
        ({"gpus": 1}, ["node-0-gpu-0"]),
        ({"advertise": DEVICE_PLUGIN}, ["node-0-gpu-0", "node-0-gpu-1"]),
        ({"advertise": fleet.DRA}, ["node-0-gpu-0", "node-0-gpu-1"]),
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_fillers_follow_the_hardware_of_their_pool(request_, left, force):
    """They are no pods that stand in the way, and none is left of what was."""
    store = fleet.cluster(1, gpus=2)
    fill(store)
    fleet.add_pool(Memory(store), force=force, **request_)
    assert fillers(store) == left
    again = Memory(store)
    run_sync(again)
    assert again.writes == []


def test_what_is_dropped_is_told():
    store = fleet.cluster(1, gpus=2)
    declare(store, GpuState(faults=(Fault("xid", 79),)), index=1)
    assert fleet.add_pool(Memory(store), gpus=1) == ["1 GPU will be as new: node-0/gpu-1 (XID 79)"]
