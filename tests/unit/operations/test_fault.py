"""`fault` and `fault clear`: what lands where, and what is given back."""

import copy
import json

import pytest

from kubectl_ghost.cluster.resources import EVENTS, NODES
from kubectl_ghost.domain.breaking import FaultFilter
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError, InputError
from kubectl_ghost.domain.faults import Effect, Reactor
from kubectl_ghost.domain.keys import NODE_DOWN_ANNOTATION
from kubectl_ghost.operations.change_hardware import end_what_is_over
from kubectl_ghost.operations.changes import Verb
from kubectl_ghost.operations.fault import FaultRequest, kinds_of
from tests.unit.operations import fleet
from tests.unit.operations.faults import XID79, busy, clearing, declared, events, fault, taints, time
from tests.unit.operations.memory import Memory, Store

__all__ = ["time"]


def test_one_gpu_of_one_node():
    store = fleet.cluster(2)
    summary, changes, _ = fault(Memory(store), "node-1", "gpu-2")
    assert summary == "XID 79 on 1 GPU of 1 node"
    assert declared(store, "node-1") == [(2, "XID 79")]
    assert declared(store, "node-0") == []
    assert taints(store, "node-1") == {"gpu-2": ["gpu.nvidia.com/xid=79:NoExecute"]}
    assert store.one(NODES, "node-1")["status"]["allocatable"]["nvidia.com/gpu"] == "7"
    assert store.one(NODES, "node-1")["status"]["capacity"]["nvidia.com/gpu"] == "8"
    assert events(store) == [("XID79", "node-1", 1)]
    assert changes[0].verb is Verb.CONFIGURED


def test_the_same_again_writes_nothing(time):
    store = fleet.cluster(1)
    fault(Memory(store), "node-0/gpu-2")
    for seconds in (1, 1800, 7200):
        time.move(seconds=seconds)
        before = fleet.state(store)
        memory = Memory(store)
        _, changes, _ = fault(memory, "node-0/gpu-2")
        assert {change.verb for change in changes} == {Verb.UNCHANGED}
        assert [str(sent) for sent in memory.writes] == ["create resourceslices/kubectl-ghost-probe-node-0"]
        assert fleet.state(store) == before


def test_a_new_fault_costs_one_request_for_its_event():
    memory = Memory(fleet.cluster(1))
    fault(memory, "node-0/gpu-2")
    assert [sent.verb for sent in memory.sent if sent.resource is EVENTS] == ["create"]


def test_events_that_the_server_has_forgotten_are_not_written_again(time):
    store = fleet.cluster(1)
    fault(Memory(store), "node-0/gpu-2")
    store.remove(EVENTS, store.names(EVENTS)[0])
    time.move(minutes=61)
    fault(Memory(store), "node-0/gpu-2")
    assert events(store) == []


def test_a_fault_that_comes_back_is_counted(time):
    store = fleet.cluster(1)
    fault(Memory(store), "node-0/gpu-2")
    clearing(Memory(store), "node-0")
    time.move(minutes=1)
    fault(Memory(store), "node-0/gpu-2")
    assert events(store) == [("XID79", "node-0", 2)]


def test_two_faults_on_one_node():
    store = fleet.cluster(1)
    fault(Memory(store), "node-0/gpu-7")
    fault(Memory(store), "node-0/gpu-3", request=FaultRequest("xid", 48))
    assert taints(store, "node-0") == {
        "gpu-3": ["gpu.nvidia.com/xid=48:NoExecute"],
        "gpu-7": ["gpu.nvidia.com/xid=79:NoExecute"],
    }
    assert store.one(NODES, "node-0")["status"]["allocatable"]["nvidia.com/gpu"] == "6"


@pytest.mark.parametrize(
    ("selection", "request_", "summary"),
    [
        ({"pool": "node"}, XID79, "XID 79 on 24 GPUs of 3 nodes"),
        ({"number": 3, "seed": 1}, XID79, "XID 79 on 3 GPUs of"),
        ({"everything": True}, FaultRequest("node-down"), "node-down on 3 nodes"),
        ({"number": 2, "seed": 1}, FaultRequest("driver-crash"), "driver-crash on 2 nodes"),
        ({"number": 1, "pool": "node"}, FaultRequest("node-unreachable"), "node-unreachable on 1 node"),
    ],
)
def test_it_says_on_how_many_it_lands(selection, request_, summary):
    store = fleet.cluster(3)
    said, _, _ = fault(Memory(store), request=request_, **selection)
    assert said.startswith(summary)
    landed = sum(len(declared(store, name)) for name in store.names(NODES))
    assert str(landed) == next(word for word in said.removeprefix("XID 79").split() if word.isdigit())


def test_the_same_seed_draws_the_same():
    def drawn(seed):
        store = fleet.cluster(3)
        fault(Memory(store), number=3, seed=seed)
        return {name: declared(store, name) for name in store.names(NODES)}

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@pytest.mark.parametrize(
    ("words", "request_", "message"),
    [
        (["node-0/gpu-9"], XID79, "has no gpu-9"),
        (["node-9"], XID79, 'nodes "node-9" not found'),
        (["node-0"], FaultRequest("xid", 999), "NVIDIA's catalogue has no XID 999"),
        (["node-0"], FaultRequest("xid", 121), "does not occur on NVIDIA H100"),
        (["node-0/gpu-1"], FaultRequest("node-down"), "of a whole node"),
        (["node-0"], FaultRequest("node-down", reactors=(Reactor.DRA,)), "Kubernetes itself notices it"),
        (["node-0"], FaultRequest("thermal", effect=Effect.NONE), "needs a device taint"),
        ([], XID79, "name what is meant"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(words, request_, message):
    store = fleet.cluster(1)
    memory = Memory(store)
    before = fleet.state(store)
    with pytest.raises(GhostError) as refused:
        fault(memory, *words, request=request_)
    assert message in refused.value.message
    assert fleet.state(store) == before


def test_more_nodes_at_random_than_there_are():
    with pytest.raises(InputError, match="5 nodes were asked for at random, and there are 2"):
        fault(Memory(fleet.cluster(2)), number=5, request=FaultRequest("node-down"))


def test_force_declares_what_the_model_cannot_have():
    store = fleet.cluster(1)
    fault(Memory(store), "node-0/gpu-0", request=FaultRequest("xid", 121, force=True))
    assert declared(store, "node-0") == [(0, "XID 121")]


def test_a_server_that_drops_taints_is_refused():
    store = Store(taints=False)
    fleet.add_pool(Memory(store), count=1)
    with pytest.raises(GhostError, match="DRADeviceTaints"):
        fault(Memory(store), "node-0/gpu-0")
    assert declared(store, "node-0") == []
    fault(Memory(store), "node-0/gpu-0", request=FaultRequest("xid", 79, reactors=(Reactor.DEVICE_PLUGIN,)))
    assert declared(store, "node-0") == [(0, "XID 79")]


def test_a_fault_with_an_end_is_over_then(time):
    store = fleet.cluster(1)
    fault(Memory(store), "node-0/gpu-2", request=FaultRequest("xid", 79, seconds=600))
    time.move(seconds=599)
    assert list(end_what_is_over(Memory(store))) == []
    time.move(seconds=1)
    assert next(iter(list(end_what_is_over(Memory(store))))).name == "node-0"
    assert declared(store, "node-0") == []
    assert taints(store, "node-0") == {}


def test_clearing_gives_everything_back():
    store = fleet.cluster(1)
    before = copy.deepcopy(fleet.state(store))
    every = tuple(Reactor)
    for request in (FaultRequest("xid", 79, reactors=every), FaultRequest("gpu-lost", reactors=every)):
        fault(Memory(store), "node-0/gpu-2", request=request)
    fault(Memory(store), "node-0", request=FaultRequest("node-down"))
    node = store.one(NODES, "node-0")
    assert node["spec"]["unschedulable"]
    assert NODE_DOWN_ANNOTATION in node["metadata"]["annotations"]
    assert {entry["type"] for entry in node["status"]["conditions"]} == {
        "AcceleratedHardwareReady",
        "GPUMissing",
        "SysLogsGPUFallenOff",
        "SysLogsXIDError",
        "XIDErrors",
    }
    plan, _ = clearing(Memory(store), "node-0")
    assert plan.summary == "3 faults of 1 node"
    assert plan.comes_back == ["node-0"]
    # As the components themselves would, they say that all is well.
    assert {entry["type"]: entry["status"] for entry in store.one(NODES, "node-0")["status"]["conditions"]} == {
        "AcceleratedHardwareReady": "True",
        "GPUMissing": "False",
        "SysLogsGPUFallenOff": "False",
        "SysLogsXIDError": "False",
        "XIDErrors": "False",
    }
    after = copy.deepcopy(fleet.state(store))
    for found in (before, after):
        found[("Node", "", "node-0")]["metadata"]["annotations"].pop("kubectl-ghost.dev/hardware")
        found[("Node", "", "node-0")]["status"].pop("conditions", None)
        for key in [key for key in found if key[0] == "Event"]:
            del found[key]
        for key, item in found.items():
            if key[0] == "ResourceSlice":
                item["spec"] = {**item["spec"], "pool": {**item["spec"]["pool"], "generation": 0}}
    assert after == before


def test_clearing_a_gpu_leaves_its_neighbours_and_its_node():
    store = fleet.cluster(1)
    fault(Memory(store), "node-0/gpu-1", "node-0/gpu-2")
    fault(Memory(store), "node-0", request=FaultRequest("driver-crash"))
    clearing(Memory(store), "node-0", "gpu-1")
    assert declared(store, "node-0") == [(None, "driver-crash"), (2, "XID 79")]
    plan, _ = clearing(Memory(store), "node-0", meant=FaultFilter(("driver-crash",)))
    assert (plan.number, plan.comes_back) == (1, [])
    assert declared(store, "node-0") == [(2, "XID 79")]


def test_nothing_to_clear_writes_nothing():
    store = fleet.cluster(2)
    plan, changes = clearing(Memory(store), everything=True)
    assert (plan.number, changes) == (0, [])
    with pytest.raises(InputError, match="unknown kind of fault"):
        clearing(Memory(store), everything=True, meant=FaultFilter(("nope",)))


def test_ecc_stands_for_all_its_types():
    assert kinds_of(["ecc", "xid"]) == (
        "ecc-correctable",
        "ecc-uncorrectable",
        "row-remap-pending",
        "row-remap-failure",
        "xid",
    )


@pytest.mark.parametrize("mode", [DryRun.CLIENT, DryRun.SERVER])
def test_dry_runs_change_nothing(mode):
    store = busy()
    memory = Memory(store, dry_run=mode)
    if mode is DryRun.SERVER:
        memory.before = lambda number, sent: None
        real = memory._ask
        memory._ask = lambda request: real(request) if request.method == "GET" else json.dumps(request.body).encode()
        memory.patch = lambda resource, live, patch, **_: live
        memory.replace = lambda resource, live, body, **_: body
    before = fleet.state(store)
    fault(memory, "node-0")
    assert fleet.state(store) == before


def test_somebody_else_at_the_same_node_is_not_lost():
    store = fleet.cluster(1)
    memory = Memory(store)
    done = []

    def other(number, sent):
        if sent.resource is NODES and not done:
            done.append(number)
            fault(Memory(store), "node-0/gpu-5", request=FaultRequest("xid", 48))

    memory.before = other
    fault(memory, "node-0/gpu-2")
    assert declared(store, "node-0") == [(2, "XID 79"), (5, "XID 48")]
    assert set(taints(store, "node-0")) == {"gpu-2", "gpu-5"}
