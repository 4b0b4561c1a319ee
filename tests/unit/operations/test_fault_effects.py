"""What a fault does to pods: who is evicted, who fails, who stays."""

import pytest

from kubectl_ghost.cluster.errors import Conflict
from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_CLAIMS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.faults import Effect, Reactor
from kubectl_ghost.domain.keys import GPUS_ANNOTATION
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations import fault as fault_module
from kubectl_ghost.operations.fault import FaultRequest, inject, plan_fault
from kubectl_ghost.operations.fault_waiting import wait_left
from tests.unit.operations import fleet
from tests.unit.operations.faults import WEB, XID79, busy, clearing, fault, taints, time, verbs
from tests.unit.operations.fleet import DEVICE_PLUGIN, DRA
from tests.unit.operations.memory import Memory

__all__ = ["time"]


def test_only_those_whom_no_controller_evicts_are_deleted_by_the_command():
    store = busy()
    _, changes, leaving = fault(Memory(store), "node-0")
    assert sorted(store.names(PODS)) == ["claims"]
    assert [text for text in verbs(changes) if text.startswith("Pod")] == [
        "Pod plugged annotated",
        "Pod plugged evicted",
        "Pod extended evicted",
    ]
    assert {name for _, name in leaving.values()} == {"claims", "extended", "plugged"}


def test_pods_on_other_gpus_stay():
    store = busy()
    fault(Memory(store), "node-0/gpu-3")
    assert sorted(store.names(PODS)) == ["claims", "extended", "plugged"]
    fault(Memory(store), "node-0/gpu-1")
    assert sorted(store.names(PODS)) == ["claims", "plugged"]


@pytest.mark.parametrize("advertise", [DEVICE_PLUGIN, DRA])
def test_pools_that_offer_one_way_alone(advertise):
    store = busy(advertise)
    fault(Memory(store), "node-0")
    assert store.names(PODS) == (["claims"] if advertise is DRA else [])


def test_a_pod_is_evicted_with_its_own_grace_period():
    memory = Memory(busy(DEVICE_PLUGIN))
    seen = []
    ask = memory._ask
    memory._ask = lambda request: (seen.append(request), ask(request))[1]
    fault(memory, "node-0")
    (deleted,) = [request for request in seen if request.method == "DELETE"]
    assert "gracePeriodSeconds" not in deleted.body


def test_which_device_a_pod_has_is_recorded_before_its_neighbour_fails():
    """Recorded after, it would be given a healthy GPU that it never had."""
    store = busy(DEVICE_PLUGIN)
    request = FaultRequest("xid", 79, reactors=(Reactor.DEVICE_PLUGIN,))
    fault(Memory(store), "node-0/gpu-0", request=request)
    assert store.one(PODS, "plugged")["metadata"]["annotations"][GPUS_ANNOTATION] == "gpu-0"


@pytest.mark.parametrize(
    "request_",
    [
        FaultRequest("xid", 79, reactors=(Reactor.DRA,)),
        FaultRequest("xid", 79, effect=Effect.NO_SCHEDULE),
        FaultRequest("xid", 79, reactors=(Reactor.EKS,)),
        FaultRequest("thermal"),
        FaultRequest("node-down"),
    ],
)
def test_faults_that_evict_nobody(request_):
    store = busy()
    _, _, leaving = fault(Memory(store), "node-0", request=request_)
    assert sorted(store.names(PODS)) == ["claims", "extended", "plugged"]
    assert leaving == {}


def test_who_tolerates_the_taint_is_not_waited_for():
    store = busy()
    toleration = {"key": "gpu.nvidia.com/xid", "operator": "Exists", "effect": "NoExecute"}

    def tolerate(item):
        item["status"]["allocation"]["devices"]["results"][0]["tolerations"] = [toleration]

    store.edit(RESOURCE_CLAIMS, "claim-claims", tolerate)
    assert {name for _, name in fault(Memory(store), "node-0")[2].values()} == {"extended", "plugged"}


def test_a_crashed_driver_takes_every_gpu():
    store = busy()
    summary, _, _ = fault(Memory(store), "node-0", request=FaultRequest("driver-crash"))
    assert summary == "driver-crash on 1 node"
    assert set(taints(store, "node-0")) == {f"gpu-{index}" for index in range(8)}
    assert store.one(NODES, "node-0")["status"]["allocatable"]["nvidia.com/gpu"] == "0"
    assert store.names(PODS) == ["claims"]


def test_who_is_placed_by_the_old_slices_is_evicted_too():
    store = busy(DRA)
    memory = Memory(store)

    def place(number, sent):
        if (sent.verb, sent.name) == ("delete", "extended"):
            late = {"extendedResourceClaimStatus": {"resourceClaimName": "claim-late"}}
            store.put(PODS, fleet.pod("late", "node-0", status=late))
            store.put(RESOURCE_CLAIMS, fleet.claim("claim-late", "node-0", ["gpu-1"], "late"))

    memory.before = place
    fault(memory, "node-0/gpu-1")
    assert store.names(PODS) == ["claims"]


LATECOMERS = {name: getattr(fault_module, name) for name in ("_LATECOMERS_SECONDS", "_LATECOMERS_PAUSE_SECONDS")}
"""As they are outside of tests."""


class Pauses:
    """Time that passes while somebody sleeps, and what happens meanwhile."""

    def __init__(self, monkeypatch, asleep=lambda: None):
        self.time, self.asleep = 0.0, asleep
        for name, seconds in LATECOMERS.items():
            monkeypatch.setattr(fault_module, name, seconds)
        monkeypatch.setattr(fault_module, "time", self)

    def monotonic(self):
        return self.time

    def sleep(self, seconds):
        self.time += seconds
        self.asleep()


def test_who_is_just_being_placed_on_an_idle_gpu_is_evicted_too(monkeypatch):
    store = fleet.cluster(1)

    def place():
        if "late" not in gone and "late" not in store.names(PODS):
            late = {"extendedResourceClaimStatus": {"resourceClaimName": "claim-late"}}
            store.put(PODS, fleet.pod("late", "node-0", status=late))
            store.put(RESOURCE_CLAIMS, fleet.claim("claim-late", "node-0", ["gpu-1"], "late"))

    gone = []
    memory = Memory(store)
    memory.before = lambda number, sent: gone.append(sent.name) if sent.verb == "delete" else None
    Pauses(monkeypatch, place)
    _, _, leaving = fault(memory, "node-0/gpu-1")
    assert store.names(PODS) == []
    assert list(leaving.values()) == [("default", "late")]


def test_a_fault_on_an_idle_gpu_takes_half_a_second_at_most_and_once(monkeypatch):
    store = fleet.cluster(1)
    pauses = Pauses(monkeypatch)
    fault(Memory(store), "node-0/gpu-1")
    assert 0.3 < pauses.time <= 0.5
    pauses.time = 0.0
    fault(Memory(store), "node-0/gpu-1")
    fault(Memory(store), "node-0/gpu-1", request=FaultRequest("thermal"))
    assert pauses.time == 0.0


def test_who_replaces_an_evicted_pod_on_a_healthy_gpu_stays():
    store = busy(DEVICE_PLUGIN)
    memory = Memory(store)

    def place(number, sent):
        if sent.verb == "delete":
            store.put(PODS, fleet.pod("next", "node-0", gpus=1, owner=WEB))

    memory.before = place
    fault(memory, "node-0/gpu-0")
    assert store.names(PODS) == ["next"]


APPLICATION = {13: 139, 31: 139, 43: 134, 45: 134, 69: 134, 94: 134}


@pytest.mark.parametrize(("code", "exit_code"), APPLICATION.items())
def test_an_error_of_the_application_fails_the_pod_that_holds_the_gpu(code, exit_code):
    store = busy()
    fault(Memory(store), "node-0/gpu-2", request=FaultRequest("xid", code))
    failed = store.one(PODS, "claims")["status"]
    assert failed["phase"] == "Failed"
    assert failed["message"] == f"XID {code} on node-0/gpu-2"
    assert failed["containerStatuses"][0]["state"]["terminated"]["exitCode"] == exit_code
    assert store.one(PODS, "plugged")["status"]["phase"] == "Running"


def test_whoever_comes_after_such_an_error_runs(time):
    store = busy()
    request = FaultRequest("xid", 13)
    fault(Memory(store), "node-0/gpu-2", request=request)
    fleet.holding(store, "next", "node-0", "gpu-2")
    time.move(minutes=1)
    fault(Memory(store), "node-0/gpu-2", request=request)
    assert store.one(PODS, "next")["status"]["phase"] == "Running"
    clearing(Memory(store), "node-0")
    fault(Memory(store), "node-0/gpu-2", request=request)
    assert store.one(PODS, "next")["status"]["phase"] == "Failed"


def test_a_pod_that_others_write_to_meanwhile_fails_all_the_same():
    store = busy()
    memory = Memory(store)
    times = []

    def meddle(number, sent):
        if sent.resource is PODS and len(times) < 3:
            times.append(number)
            store.edit(PODS, "claims", lambda item: item["metadata"]["labels"].update(n=str(number)))

    memory.before = meddle
    fault(memory, "node-0/gpu-2", request=FaultRequest("xid", 13))
    assert store.one(PODS, "claims")["status"]["phase"] == "Failed"


def test_a_pod_that_takes_its_time_to_go_is_deleted_once():
    store = busy(DEVICE_PLUGIN)
    store.edit(PODS, "plugged", lambda item: item["metadata"].update(finalizers=["example.com/slow"]))
    memory = Memory(store)
    fault(memory, "node-0")
    assert [sent.name for sent in memory.writes if sent.verb == "delete"] == ["plugged"]


def test_waiting_names_who_does_not_go():
    store = busy()
    plan = plan_fault(Memory(store), Selection(("node-0",)), XID79)
    leaving = {}
    list(inject(Memory(store), plan, leaving))
    with pytest.raises(GhostError, match='pod "default/claims" was evicted and is still there'):
        wait_left(Memory(store), plan.chosen, leaving, timeout=0, progress=lambda *_: None)
    store.remove(PODS, "claims")
    wait_left(Memory(store), plan.chosen, leaving, timeout=0, progress=lambda *_: None)


def test_a_pod_whose_name_another_has_taken_is_spared(monkeypatch):
    store = busy(DEVICE_PLUGIN)
    memory, asked = Memory(store), []

    def refuse(_, item, **__):
        asked.append(item["metadata"]["name"])
        raise Conflict("another uid", status=409)

    monkeypatch.setattr(memory, "delete", refuse)
    fault(memory, "node-0")
    assert asked == ["plugged"]
    assert store.one(PODS, "plugged")
