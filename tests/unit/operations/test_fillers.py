"""Filler pods, as far as the API server's storage decides: which are made, which go, and what is waited for."""

import copy

import pytest

from kubectl_ghost.cluster.errors import Forbidden, NotFound
from kubectl_ghost.cluster.resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES, RESOURCE_CLAIMS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations.filler_waiting import wait_for_fillers
from kubectl_ghost.operations.fillers import reconcile_fillers
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.occupy import OccupyRequest, apply_occupy, filler_names, plan_occupy
from tests.unit.operations import fleet
from tests.unit.operations.fleet import BOTH, DEVICE_PLUGIN, run_sync
from tests.unit.operations.memory import Memory
from tests.unit.operations.occupancy import PODS_KIND, POOL, SPACE, fillers, leftovers, occupy, release

pytestmark = pytest.mark.usefixtures("in_order")


@pytest.fixture(autouse=True)
def _no_pauses_for_fillers(monkeypatch):
    for name in ("fillers", "filler_waiting", "creating"):
        monkeypatch.setattr(f"kubectl_ghost.operations.{name}._POLL_SECONDS", 0)


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
    run_sync(Memory(store))
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
    store.remove(NODES, "node-1")
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
    monkeypatch.setattr("kubectl_ghost.operations.creating._PATIENCE_SECONDS", 0)
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
    # Twice some did not run; then none seemed to be left, and whether all are there was asked.
    assert len(looks) == 4


def test_a_filler_that_the_scheduler_refuses_is_named_with_its_words(monkeypatch):
    monkeypatch.setattr("kubectl_ghost.operations.filler_waiting._TROUBLE_SECONDS", 0)
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


def test_a_filler_that_is_missed_for_a_moment_is_waited_for(monkeypatch):
    """Another command may be making it anew."""
    store = fleet.cluster(1, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    store.edit(PODS, "node-0-gpu-0", lambda item: item.update(status={"phase": "Running"}), SPACE)
    filler = store.objects.pop(("Pod", SPACE, "node-0-gpu-0"))
    waiting = Memory(store)

    def come(number, _):
        if number == 3:
            store.put(PODS, filler)

    waiting.before_any = come
    wait_for_fillers(waiting, ["node-0-gpu-0"], timeout=60, progress=lambda done, total: None)
    assert len(waiting.sent) == 4


def lose(store):
    store.remove(RESOURCE_CLAIMS, "node-0-gpu-0", SPACE)


def replace_by_another(store):
    other = store.objects["ResourceClaim", SPACE, "node-0-gpu-1"]["spec"]
    store.edit(RESOURCE_CLAIMS, "node-0-gpu-0", lambda item: item.update(spec=other), SPACE)


@pytest.mark.parametrize("damage", [lose, replace_by_another])
def test_a_filler_without_its_claim_is_made_again_with_one(damage):
    store = fleet.cluster(1, gpus=2)
    occupy(Memory(store), kind=PODS_KIND)
    claim = store.objects["ResourceClaim", SPACE, "node-0-gpu-0"]["spec"]
    pod = store.objects["Pod", SPACE, "node-0-gpu-0"]
    damage(store)
    run_sync(Memory(store))
    assert store.objects["ResourceClaim", SPACE, "node-0-gpu-0"]["spec"] == claim
    made = store.objects["Pod", SPACE, "node-0-gpu-0"]
    assert (made["metadata"]["uid"] != pod["metadata"]["uid"], made["spec"]) == (True, pod["spec"])
    resting = Memory(store)
    run_sync(resting)
    assert resting.writes == []


def going(store, resource, name, *users):
    """Somebody deletes an object, and a finalizer keeps it while these pods have it."""
    reserved = [{"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in users]

    def delete(item):
        item["metadata"].update(deletionTimestamp="now", finalizers=["x"])
        if resource is RESOURCE_CLAIMS:
            item["status"] = {"reservedFor": reserved}

    store.edit(resource, name, delete, SPACE)


def test_a_claim_that_is_going_stays_with_the_filler_that_has_it():
    store = fleet.cluster(1, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    going(store, RESOURCE_CLAIMS, "node-0-gpu-0", store.objects["Pod", SPACE, "node-0-gpu-0"])
    resting = Memory(store)
    run_sync(resting)
    assert resting.writes == []


def test_a_filler_that_cannot_get_its_claim_any_more_is_made_again_when_that_has_gone():
    store = fleet.cluster(1, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    going(store, RESOURCE_CLAIMS, "node-0-gpu-0")
    writer = Memory(store)

    def go(_, sent):
        if sent.resource is RESOURCE_CLAIMS and sent.verb == "get":
            store.objects.pop(("ResourceClaim", SPACE, "node-0-gpu-0"), None)

    writer.before_any = go
    run_sync(writer)
    written = [str(sent) for sent in writer.writes]
    create = "create resourceclaims/node-0-gpu-0"
    assert written == ["delete pods/node-0-gpu-0", create, create, "create pods/node-0-gpu-0"]
    assert fillers(store) == store.names(RESOURCE_CLAIMS) == ["node-0-gpu-0"]


@pytest.mark.parametrize("resource", [PODS, RESOURCE_CLAIMS])
def test_what_is_going_already_is_not_deleted_again(resource):
    store = fleet.cluster(2, gpus=1)
    occupy(Memory(store), kind=PODS_KIND)
    going(store, resource, "node-0-gpu-0")
    release(Memory(store), Selection(("node-0",)))
    resting = Memory(store)
    run_sync(resting)
    assert resting.writes == []
    release(Memory(store))
    assert store.names(NAMESPACES) == []
