"""Making GPUs busy and free again, as far as the API server's storage decides: what is declared, written and undone."""

import json
from dataclasses import replace

import pytest

from kubectl_ghost.cluster.resources import NAMESPACES, NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import MigMode, Occupancy, OccupancyKind
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations.changes import Verb
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.occupy import OccupyRequest, apply_occupy, plan_occupy
from kubectl_ghost.operations.reconcile import update_node
from tests.unit.operations import fleet
from tests.unit.operations.fleet import BOTH, DEVICE_PLUGIN, DRA, run_sync, state
from tests.unit.operations.memory import Killed, Memory
from tests.unit.operations.occupancy import PODS_KIND, POOL, fillers, leftovers, occupy, release

pytestmark = pytest.mark.usefixtures("in_order")


@pytest.fixture(autouse=True)
def _no_pauses_for_fillers(monkeypatch):
    for name in ("fillers", "filler_waiting"):
        monkeypatch.setattr(f"kubectl_ghost.operations.{name}._POLL_SECONDS", 0)


def busy(store):
    """Which GPUs are busy, by node."""
    found = {}
    for node in store.all(NODES):
        occupied = [index for index, gpu in hardware_of(node).gpus if gpu.occupancy]
        found[node["metadata"]["name"]] = occupied
    return found


def allocatable(store, name):
    return store.one(NODES, name)["status"]["allocatable"]["nvidia.com/gpu"]


def tainted(store, name):
    """The devices of a node that carry the taint of occupancy."""
    return [
        device["name"]
        for item in fleet.slices_on(store, name)
        for device in item["spec"].get("devices") or ()
        if any(taint["key"] == keys.OCCUPIED_TAINT for taint in device.get("taints", ()))
    ]


def dynamic(count=1):
    """A pool whose MIG is dynamic."""
    store = fleet.cluster(count, gpus=2)
    for name in store.names(NODES):
        node = store.one(NODES, name)

        def remode(hardware):
            return replace(hardware, settings=replace(hardware.settings, mig=MigMode.DYNAMIC))

        update_node(Memory(store), node, remode)
    return store


def test_a_fragmented_fleet_from_one_line():
    store = fleet.cluster(4, gpus=4)
    plan = plan_occupy(Memory(store), OccupyRequest(POOL, free=(2, 2, 2, 1)))
    assert plan.summary == (9, 4, 7)
    list(apply_occupy(Memory(store), plan))
    assert busy(store) == {"node-0": [0, 1], "node-1": [0, 1], "node-2": [0, 1], "node-3": [0, 1, 2]}
    assert tainted(store, "node-3") == ["gpu-0", "gpu-1", "gpu-2"]
    assert [allocatable(store, f"node-{index}") for index in range(4)] == ["2", "2", "2", "1"]


@pytest.mark.parametrize("advertise", [BOTH, DRA, DEVICE_PLUGIN])
@pytest.mark.parametrize("kind", list(OccupancyKind))
def test_the_same_command_again_writes_nothing_and_release_undoes_it_all(advertise, kind):
    store = fleet.cluster(3, gpus=4, advertise=advertise)
    before = state(store)
    occupy(Memory(store), kind=kind, free=(2, 0, 4))
    again = Memory(store)
    assert {change.verb for change in occupy(again, kind=kind, free=(2, 0, 4))} == {Verb.UNCHANGED}
    assert again.writes == []
    resting = Memory(store)
    run_sync(resting)
    assert resting.writes == []
    release(Memory(store))
    assert state(store) == before
    idle = Memory(store)
    assert release(idle) == []
    assert idle.writes == []


def test_other_numbers_are_reached_from_where_the_fleet_is():
    store = fleet.cluster(2, gpus=4)
    for numbers, expected in (((2, 2), [[0, 1], [0, 1]]), ((3, 1), [[0], [0, 1, 2]]), ((4, 4), [[], []])):
        occupy(Memory(store), free=numbers)
        assert list(busy(store).values()) == expected


def test_what_is_busy_by_pods_becomes_busy_by_taint_and_the_other_way_round():
    store = fleet.cluster(1, gpus=2)
    one = Selection(("node-0/gpu-1",))
    occupy(Memory(store), one, kind=PODS_KIND)
    assert (fillers(store), tainted(store, "node-0")) == (["node-0-gpu-1"], [])
    occupy(Memory(store), one)
    assert (fillers(store), tainted(store, "node-0"), leftovers(store)) == ([], ["gpu-1"], [])


def test_held_gpus_are_refused_by_name_and_evicted_by_force():
    store = fleet.cluster(1, gpus=4)
    fleet.holding(store, "by-claim", "node-0", "gpu-0")
    store.put(PODS, fleet.pod("by-count", "node-0", gpus=2))
    writer = Memory(store)
    for request in ({}, {"free": (3,)}, {"percent": 0}):
        with pytest.raises(GhostError, match=r"pod\(s\) hold GPUs that are to be busy or free: default/by-") as refusal:
            occupy(writer, **request)
        assert "--force" in refusal.value.hint
    assert writer.writes == []
    occupy(writer, Selection(("node-0/gpu-2",)))
    occupy(writer, Selection(("node-0/gpu-0",)), force=True)
    assert store.names(PODS) == []


def test_only_the_pods_of_the_gpus_that_are_meant_go():
    store = fleet.cluster(2, gpus=2)
    fleet.holding(store, "stays", "node-0", "gpu-1")
    fleet.holding(store, "goes", "node-0", "gpu-0")
    fleet.holding(store, "elsewhere", "node-1", "gpu-0")
    occupy(Memory(store), Selection(("node-0/gpu-0",)), force=True)
    assert store.names(PODS) == ["elsewhere", "stays"]


def test_who_comes_back_by_the_old_slices_is_evicted_again():
    store = fleet.cluster(1, gpus=2)
    fleet.holding(store, "first", "node-0", "gpu-0")
    writer = Memory(store)

    def come_back(_, sent):
        if sent.verb == "replace" and sent.resource is RESOURCE_SLICES:
            fleet.holding(store, "second", "node-0", "gpu-0")

    writer.before = come_back
    occupy(writer, Selection(("node-0/gpu-0",)), force=True)
    assert store.names(PODS) == []


def test_pods_of_the_device_plugin_keep_the_gpus_they_had():
    store = fleet.cluster(1, gpus=4, advertise=DEVICE_PLUGIN)
    store.put(PODS, fleet.pod("early", "node-0", gpus=1))
    store.put(PODS, fleet.pod("late", "node-0", gpus=1))
    occupy(Memory(store), Selection(("node-0/gpu-3",)))
    records = {pod["metadata"]["name"]: pod["metadata"]["annotations"] for pod in store.all(PODS)}
    assert records == {"early": {keys.GPUS_ANNOTATION: "gpu-0"}, "late": {keys.GPUS_ANNOTATION: "gpu-1"}}


def test_a_draw_is_of_the_free_gpus_and_a_share_counts_the_held():
    store = fleet.cluster(2, gpus=4)
    fleet.holding(store, "pod", "node-0", "gpu-0")
    occupy(Memory(store), number=3, seed=5)
    first = busy(store)
    assert sum(map(len, first.values())) == 3
    assert 0 not in first["node-0"]
    again = Memory(store)
    occupy(again, number=3, seed=5)
    assert again.writes == []
    assert plan_occupy(again, OccupyRequest(POOL, percent=50, seed=7)).summary[0] == 4


@pytest.mark.parametrize("mode", [DryRun.CLIENT, DryRun.SERVER])
@pytest.mark.parametrize("kind", list(OccupancyKind))
def test_a_dry_run_tells_the_same_and_stores_nothing(mode, kind):
    store = fleet.cluster(2, gpus=2)
    real = [(change.resource, change.name, change.verb) for change in occupy(Memory(store.copy()), kind=kind)]
    before = state(store)
    writer = Memory(store, dry_run=mode)
    if mode is DryRun.SERVER:
        # The storage does not rehearse updates: here it is enough that all of them would be rehearsals.
        writer.before = lambda _, sent: pytest.fail(str(sent)) if "dryRun" not in sent.query else None
        writer.store = store.copy()
    assert [(change.resource, change.name, change.verb) for change in occupy(writer, kind=kind)] == real
    assert state(store) == before


def test_parts_of_a_gpu_are_taken_from_its_counters_and_given_back():
    store = dynamic()
    before = state(store)
    one = Selection(("node-0/gpu-0",))
    occupy(Memory(store), one, profiles="4g.40gb")
    counters = [
        found for item in fleet.slices_on(store, "node-0") for found in item["spec"].get("sharedCounters") or ()
    ]
    slices = [counters[0]["counters"][f"memory-slice-{index}"]["value"] for index in range(8)]
    assert slices == ["0"] * 4 + ["1"] * 4
    assert tainted(store, "node-0") == []
    again = Memory(store)
    occupy(again, one, profiles="4g.40gb")
    assert again.writes == []
    release(Memory(store))
    assert state(store) == before


def test_parts_that_pods_leave_no_room_for_are_refused_and_forced():
    store = dynamic()
    fleet.holding(store, "pod", "node-0", "gpu-0-mig-1g10gb-19-0")
    fleet.holding(store, "beside", "node-0", "gpu-0-mig-1g10gb-19-6")
    one = Selection(("node-0/gpu-0",))
    with pytest.raises(GhostError, match=r"default/pod$"):
        occupy(Memory(store), one, profiles="4g.40gb")
    occupy(Memory(store), one, profiles="4g.40gb", force=True)
    assert store.names(PODS) == ["beside"]
    assert hardware_of(store.one(NODES, "node-0")).gpu(0).occupancy == Occupancy(instances=(MigInstance("4g.40gb", 0),))


def test_a_server_that_drops_device_taints_is_told_of_before_anything_is_written():
    store = fleet.cluster(1, gpus=2)
    store.taints = False
    writer = Memory(store)
    with pytest.raises(GhostError, match="feature gate DRADeviceTaints is off"):
        occupy(writer)
    assert {sent.query.get("dryRun") for sent in writer.writes} == {"All"}
    occupy(writer, kind=PODS_KIND)


def with_holders():
    """Three nodes of four GPUs, one with pods that stand in the way."""
    store = fleet.cluster(3, gpus=4)
    fleet.holding(store, "claims", "node-0", "gpu-0")
    store.put(PODS, fleet.pod("counts", "node-1", gpus=3))
    return store


def occupied_by_pods():
    store = fleet.cluster(2, gpus=2)
    occupy(Memory(store), kind=PODS_KIND, priority=0)
    return store


KILLED = {
    "taint": (lambda: fleet.cluster(3, gpus=4), lambda writer: occupy(writer, free=(2, 1, 0))),
    "taint by force": (with_holders, lambda writer: occupy(writer, free=(0, 4, 1), force=True)),
    "pods": (lambda: fleet.cluster(2, gpus=2), lambda writer: occupy(writer, kind=PODS_KIND, free=(1, 0))),
    "pods on the device plugin's path": (
        lambda: fleet.cluster(2, gpus=2, advertise=DEVICE_PLUGIN),
        lambda writer: occupy(writer, kind=PODS_KIND),
    ),
    "pods by force": (with_holders, lambda writer: occupy(writer, kind=PODS_KIND, free=(0, 4, 1), force=True)),
    "pods to taint": (occupied_by_pods, lambda writer: occupy(writer, free=(1, 1))),
    "parts": (dynamic, lambda writer: occupy(writer, Selection(("node-0/gpu-0",)), profiles="3g.40gb,1g.10gb")),
    "release": (occupied_by_pods, release),
}


@pytest.mark.parametrize("name", KILLED)
def test_killed_between_any_two_writes_the_same_command_finishes_and_sync_agrees_with_what_is_declared(name):
    prepare, run = KILLED[name]
    before = prepare()
    whole = Memory(before.copy())
    run(whole)
    assert len(whole.writes) > 2
    for number in range(1, len(whole.writes) + 1):
        store = before.copy()
        with pytest.raises(Killed):
            run(Memory(store).kill_before(number))
        twin = store.copy()
        run(Memory(store))
        assert state(store) == state(whole.store), f"killed before write {number}"
        run_sync(Memory(twin))
        declared = {
            f"{node['metadata']['name']}-gpu-{index}"
            for node in twin.all(NODES)
            for index, gpu in hardware_of(node).gpus
            if gpu.occupancy and gpu.occupancy.kind is PODS_KIND
        }
        assert set(fillers(twin)) == declared, f"sync after a kill before write {number}"
        assert bool(twin.names(NAMESPACES)) == bool(declared)
        resting = Memory(twin)
        run_sync(resting)
        assert resting.writes == []


def counters(store):
    """What the slices of node-0 leave of its GPUs' parts."""
    return [
        (found["name"], found["counters"])
        for item in fleet.slices_on(store, "node-0")
        for found in item["spec"].get("sharedCounters") or ()
    ]


def placing(store, name, device):
    """A user at whose first write of a slice a pod comes by what the slices were."""
    writer = Memory(store)

    def come(_, sent):
        if sent.verb == "replace" and sent.resource is RESOURCE_SLICES and name not in store.names(PODS):
            fleet.holding(store, name, "node-0", device)

    writer.before = come
    return writer


def test_parts_that_a_pod_has_taken_meanwhile_are_left_to_it_and_the_pod_is_named():
    store = dynamic()
    occupy(Memory(store), Selection(("node-0/gpu-0",)), profiles="1g.10gb:6")
    before, node = counters(store), hardware_of(store.one(NODES, "node-0"))
    writer = placing(store, "late", "gpu-0-mig-1g10gb-19-0")
    with pytest.raises(GhostError, match=r'^node "node-0": 1 pod\(s\) hold GPUs that .*: default/late$') as refusal:
        occupy(writer, Selection(("node-0",)), profiles="4g.40gb,1g.10gb")
    assert "--force" in refusal.value.hint
    after = hardware_of(store.one(NODES, "node-0"))
    assert after.gpu(0) == node.gpu(0)
    # The other GPU is not in question.
    assert [instance.profile for instance in after.gpu(1).occupancy.instances] == ["4g.40gb", "1g.10gb"]
    assert [found for found in counters(store) if found[0].startswith("gpu-0-")] == before[:1]
    assert store.names(PODS) == ["late"]


def test_parts_beside_which_a_pod_has_come_stay():
    store = dynamic()
    occupy(placing(store, "late", "gpu-0-mig-1g10gb-19-6"), Selection(("node-0/gpu-0",)), profiles="4g.40gb")
    assert busy(store) == {"node-0": [0]}


class Rehearsing(Memory):
    """A server's dry run: each write is answered by what it alone would make of what is stored, and stored nowhere."""

    def __init__(self, store):
        super().__init__(store, dry_run=DryRun.SERVER)

    def _ask(self, request):
        kept = self.store.copy()
        answer = json.loads(super()._ask(request))
        if request.method != "GET":
            assert "dryRun" in {**request.query, **request.body}
            self.store.objects, self.store.changes, self.store.version = kept.objects, kept.changes, kept.version
            name = answer.get("metadata", {}).get("name", "")
            live = self.store.objects.get((answer.get("kind", ""), "", name))
            if live is not None:
                answer["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        return json.dumps(answer).encode()


def told(changes):
    return [(change.resource, change.name, change.verb) for change in changes]


def prepared(kind):
    store = fleet.cluster(2, gpus=2)
    if kind is not None:
        occupy(Memory(store), kind=kind)
    return store


@pytest.mark.parametrize("before", [None, *OccupancyKind])
@pytest.mark.parametrize("kind", [None, *OccupancyKind])
def test_a_dry_run_on_the_server_tells_what_would_follow_from_what_it_does_not_store(before, kind):
    def run(writer):
        return told(occupy(writer, kind=kind) if kind else release(writer))

    store = prepared(before)
    stored = state(store)
    rehearsed = run(Rehearsing(store))
    assert state(store) == stored
    assert rehearsed == run(Memory(store))
