"""Making GPUs busy and free again, as far as the API server's storage decides: what is declared, written and undone."""

import copy
from dataclasses import replace

import pytest

from kubectl_ghost.cluster.errors import Forbidden, NotFound
from kubectl_ghost.cluster.resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import MigMode, Occupancy, OccupancyKind
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.operations.changes import Verb
from kubectl_ghost.operations.filler_waiting import wait_for_fillers
from kubectl_ghost.operations.fillers import reconcile_fillers
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.occupy import OccupyRequest, apply_occupy, filler_names, plan_occupy
from kubectl_ghost.operations.reconcile import update_node
from kubectl_ghost.operations.release import apply_release, plan_release
from kubectl_ghost.operations.selecting import Selection
from tests.unit.operations import fleet
from tests.unit.operations.fleet import BOTH, DEVICE_PLUGIN, DRA, run_sync, state
from tests.unit.operations.memory import Killed, Memory

POOL = Selection(pool="node")
PODS_KIND = OccupancyKind.PODS
SPACE = keys.FILLER_NAMESPACE


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """One after the other, and without pauses."""
    for name in ("assignments", "change_hardware", "fillers", "pods"):
        monkeypatch.setattr(
            f"kubectl_ghost.operations.{name}.run_ordered", lambda function, items: map(function, list(items))
        )
    for name in ("fillers", "filler_waiting"):
        monkeypatch.setattr(f"kubectl_ghost.operations.{name}._POLL_SECONDS", 0)


def occupy(writer, selection=POOL, **request):
    """Run occupy to its end; returns the changes."""
    return list(apply_occupy(writer, plan_occupy(writer, OccupyRequest(selection, **request))))


def release(writer, selection=POOL):
    """Run release to its end; returns the changes."""
    return list(apply_release(writer, plan_release(writer, selection)))


def sync(writer):
    """All nodes as declared, and the fillers with them."""
    run_sync(writer)
    nodes = {node["metadata"]["name"]: node for node in writer.store.all(NODES)}
    hardware = {name: hardware_of(node) for name, node in nodes.items()}
    return list(reconcile_fillers(writer, hardware, nodes))


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


def fillers(store):
    return [item["metadata"]["name"] for item in store.all(PODS) if item["metadata"]["namespace"] == SPACE]


def leftovers(store):
    """What is not a node, slice or class of the fleet, nor a pod of somebody else."""
    kinds = ("Namespace", "PriorityClass")
    return [key for key in store.objects if key[0] in kinds or key[1] == SPACE]


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
    sync(resting)
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


@pytest.mark.parametrize("advertise", [BOTH, DEVICE_PLUGIN])
def test_a_filler_that_ended_is_made_again_with_its_priority_and_one_that_nobody_declares_goes(advertise):
    store = fleet.cluster(1, gpus=3, advertise=advertise)
    occupy(Memory(store), kind=PODS_KIND, priority=-5)
    for pod in store.all(PODS):
        store.edit(PODS, pod["metadata"]["name"], lambda item: item["spec"].update(priority=-5), SPACE)
    store.edit(PODS, "node-0-gpu-1", lambda item: item.update(status={"phase": "Failed"}), SPACE)
    store.remove(PODS, "node-0-gpu-2", SPACE)
    stray = copy.deepcopy(store.objects["Pod", SPACE, "node-0-gpu-0"])
    store.put(PODS, {**stray, "metadata": {**stray["metadata"], "name": "gone-7-gpu-0"}})
    sync(Memory(store))
    made = {pod["metadata"]["name"]: pod for pod in store.all(PODS)}
    assert sorted(made) == ["node-0-gpu-0", "node-0-gpu-1", "node-0-gpu-2"]
    assert {pod["spec"]["priorityClassName"] for pod in made.values()} == {f"{SPACE}-m5"}
    assert "status" not in made["node-0-gpu-1"]


def test_fillers_of_a_node_that_cannot_be_read_are_left_alone():
    store = fleet.cluster(2, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    nodes = {node["metadata"]["name"]: node for node in store.all(NODES)}
    readable = {"node-0": hardware_of(nodes["node-0"])}
    assert list(reconcile_fillers(Memory(store), readable, nodes)) == []
    list(reconcile_fillers(Memory(store), readable, {"node-0": nodes["node-0"]}))
    assert fillers(store) == ["node-0-gpu-0"]


def test_a_fleet_without_fillers_costs_one_small_request():
    store = fleet.cluster(2, gpus=1)
    occupy(Memory(store))
    nodes = {node["metadata"]["name"]: node for node in store.all(NODES)}
    writer = Memory(store)
    assert list(reconcile_fillers(writer, {name: hardware_of(node) for name, node in nodes.items()}, nodes)) == []
    assert [str(sent) for sent in writer.sent] == [f"get namespaces/{SPACE}"]


def test_another_priority_is_told_to_the_fillers_that_are_meant_alone():
    store = fleet.cluster(1, gpus=3)
    occupy(Memory(store), Selection(("node-0/gpu-0", "node-0/gpu-1")), kind=PODS_KIND)
    occupy(Memory(store), Selection(("node-0/gpu-1",)), kind=PODS_KIND, priority=7)
    occupy(Memory(store), kind=PODS_KIND)
    classes = [pod["spec"]["priorityClassName"] for pod in store.all(PODS)]
    assert classes == [f"{SPACE}-0", f"{SPACE}-7", f"{SPACE}-0"]


def test_the_last_filler_takes_the_namespace_and_the_classes_with_it_but_not_those_of_others():
    store = fleet.cluster(2, gpus=1)
    store.put(PRIORITY_CLASSES, {"metadata": {"name": "theirs", "labels": {}}, "value": 1})
    occupy(Memory(store), kind=PODS_KIND)
    release(Memory(store), Selection(("node-0",)))
    assert (fillers(store), store.names(NAMESPACES)) == (["node-1-gpu-0"], [SPACE])
    changes = release(Memory(store), Selection(("node-1",)))
    assert [f"{change.resource.kind} {change.verb}" for change in changes][-4:] == [
        "Pod deleted",
        "ResourceClaim deleted",
        "PriorityClass deleted",
        "Namespace deleted",
    ]
    assert leftovers(store) == [("PriorityClass", "", "theirs")]


def test_a_namespace_that_does_not_go_is_told_of(monkeypatch):
    monkeypatch.setattr("kubectl_ghost.operations.fillers._PATIENCE_SECONDS", 0)
    store = fleet.cluster(1, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    store.edit(NAMESPACES, SPACE, lambda item: item["metadata"].update(deletionTimestamp="now", finalizers=["x"]))
    with pytest.raises(GhostError, match="is being deleted and does not go"):
        occupy(Memory(store), kind=PODS_KIND)
    release(Memory(store))
    assert SPACE in store.names(NAMESPACES)


def test_a_namespace_with_somebody_elses_pod_stays():
    store = fleet.cluster(1, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    stranger = fleet.pod("theirs")
    store.put(PODS, {**stranger, "metadata": {**stranger["metadata"], "namespace": SPACE}})
    release(Memory(store))
    assert (fillers(store), store.names(NAMESPACES)) == (["theirs"], [SPACE])


def test_a_namespace_of_somebody_else_is_refused():
    store = fleet.cluster(1, gpus=1)
    store.put(NAMESPACES, {"metadata": {"name": SPACE}})
    with pytest.raises(GhostError, match="exists and is not managed by kubectl-ghost"):
        occupy(Memory(store), kind=PODS_KIND)


@pytest.mark.parametrize("remade", [False, True], ids=["gone", "made anew by another command"])
def test_a_namespace_that_is_going_is_waited_for(remade):
    store = fleet.cluster(1, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    store.edit(NAMESPACES, SPACE, lambda item: item["metadata"].update(deletionTimestamp="now", finalizers=["x"]))
    writer, looks = Memory(store), []

    def go(_, sent):
        if sent.resource is NAMESPACES and sent.verb == "get":
            looks.append(sent)
        if len(looks) == 3 and sent is looks[-1]:
            store.remove(PODS, "node-0-gpu-0", SPACE)
            store.remove(RESOURCE_CLAIMS, "node-0-gpu-0", SPACE)
            store.objects.pop(("Namespace", "", SPACE))
            if remade:
                store.put(NAMESPACES, {"metadata": {"name": SPACE, "labels": fleet.MARKS}})

    writer.before_any = go
    occupy(writer, kind=PODS_KIND)
    assert fillers(store) == ["node-0-gpu-0"]
    assert "deletionTimestamp" not in store.one(NAMESPACES, SPACE)["metadata"]


@pytest.mark.parametrize(
    "error",
    [
        Forbidden(
            'pods "x" is forbidden: error looking up service account s/default: serviceaccount "default" not found'
        ),
        Forbidden("forbidden", details={"causes": [{"reason": "NamespaceTerminating"}]}),
    ],
)
def test_a_namespace_that_is_not_ready_for_pods_yet_is_waited_for(error):
    store, refused = fleet.cluster(1, gpus=1), []
    writer = Memory(store)

    def refuse(_, sent):
        if sent.resource is PODS and not refused:
            refused.append(sent)
            raise error

    writer.before = refuse
    occupy(writer, kind=PODS_KIND)
    assert (len(refused), fillers(store)) == (1, ["node-0-gpu-0"])


def test_a_namespace_that_goes_while_fillers_are_made_takes_none_of_them_for_good():
    store = fleet.cluster(1, gpus=2)
    writer = Memory(store)

    def go(_, sent):
        if sent.resource is PODS and sent.name == "node-0-gpu-1" and len(store.names(RESOURCE_CLAIMS)) == 2:
            writer.before = lambda _, sent: None
            for key in [key for key in store.objects if key[1] == SPACE or key[0] == "Namespace"]:
                del store.objects[key]
            raise NotFound(f'namespaces "{SPACE}" not found')

    writer.before = go
    occupy(writer, kind=PODS_KIND)
    assert fillers(store) == store.names(RESOURCE_CLAIMS) == ["node-0-gpu-0", "node-0-gpu-1"]


def test_release_of_everything_takes_fillers_of_nodes_that_are_gone():
    store = fleet.cluster(2, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    store.remove(NODES, "node-1")
    release(Memory(store), Selection(everything=True))
    assert leftovers(store) == []


def test_a_missing_permission_is_told_at_once():
    writer = Memory(fleet.cluster(1, gpus=1))

    def refuse(_, sent):
        if sent.resource is PODS:
            raise Forbidden('pods is forbidden: User "x" cannot create resource "pods"')

    writer.before = refuse
    with pytest.raises(Forbidden):
        occupy(writer, kind=PODS_KIND)


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
        sync(Memory(twin))
        declared = {
            f"{node['metadata']['name']}-gpu-{index}"
            for node in twin.all(NODES)
            for index, gpu in hardware_of(node).gpus
            if gpu.occupancy and gpu.occupancy.kind is PODS_KIND
        }
        assert set(fillers(twin)) == declared, f"sync after a kill before write {number}"
        assert bool(twin.names(NAMESPACES)) == bool(declared)
        resting = Memory(twin)
        sync(resting)
        assert resting.writes == []


def test_waiting_ends_when_all_fillers_run():
    store = fleet.cluster(1, gpus=2)
    plan = plan_occupy(Memory(store), OccupyRequest(POOL, kind=PODS_KIND))
    writer = Memory(store)
    list(apply_occupy(writer, plan))
    looks = []

    def run(_, sent):
        looks.append(sent)
        if len(looks) == 3:
            for name in fillers(store):
                store.edit(PODS, name, lambda item: item.update(status={"phase": "Running"}), SPACE)

    waiting = Memory(store)
    waiting.before_any = run
    wait_for_fillers(waiting, filler_names(plan), timeout=60, progress=lambda done, total: None)
    assert len(looks) == 3


def test_a_filler_that_the_scheduler_refuses_is_named_with_its_words(monkeypatch):
    monkeypatch.setattr("kubectl_ghost.operations.filler_waiting._REFUSED_SECONDS", 0)
    store = fleet.cluster(1, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    store.edit(PODS, "node-0-gpu-0", lambda item: item.update(status={"conditions": [refusal]}), SPACE)
    with pytest.raises(GhostError, match='no place for pod "node-0-gpu-0": 0/1 nodes') as problem:
        wait_for_fillers(Memory(store), ["node-0-gpu-0"], timeout=60, progress=lambda done, total: None)
    assert "kubectl ghost release node-0/gpu-0" in problem.value.hint


def test_waiting_has_an_end():
    store = fleet.cluster(1, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    with pytest.raises(GhostError, match="timed out: 1 of 1 pods do not run yet"):
        wait_for_fillers(Memory(store), ["node-0-gpu-0"], timeout=0, progress=lambda done, total: None)
    with pytest.raises(GhostError, match='pod "node-0-gpu-9" was deleted'):
        wait_for_fillers(Memory(store), ["node-0-gpu-9"], timeout=0, progress=lambda done, total: None)
