"""Two commands at once: fillers follow the declarations that stand in the end, wherever the two have met."""

import pytest

from kubectl_ghost.cluster.errors import Forbidden, NotFound
from kubectl_ghost.cluster.resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES, RESOURCE_CLAIMS
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations.fillers import reconcile_fillers
from kubectl_ghost.operations.fleet import hardware_of
from tests.unit.operations import fleet
from tests.unit.operations.fleet import run_sync
from tests.unit.operations.memory import Memory
from tests.unit.operations.occupancy import (
    PODS_KIND,
    SPACE,
    declared_fillers,
    filler_claims,
    fillers,
    leftovers,
    occupy,
    release,
)

pytestmark = pytest.mark.usefixtures("in_order")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    for name in ("fillers", "creating"):
        monkeypatch.setattr(f"kubectl_ghost.operations.{name}._POLL_SECONDS", 0)


def make(*words):
    return lambda writer: occupy(writer, Selection(words), kind=PODS_KIND)


def free(*words):
    return lambda writer: release(writer, Selection(words))


def fleet_with(*words):
    store = fleet.cluster(2, gpus=2)
    if words:
        make(*words)(Memory(store))
    return store


FIRST, SECOND, ELSEWHERE = "node-0/gpu-0", "node-0/gpu-1", "node-1/gpu-0"
CONTRADICTION = None
"""Whichever of the two declares last is right."""
PAIRS = {
    "two make": ((), make(FIRST), make(SECOND), ["node-0-gpu-0", "node-0-gpu-1"]),
    "the same": ((), make(FIRST), make(FIRST), ["node-0-gpu-0"]),
    "one makes, one frees": ((SECOND,), make(FIRST), free(SECOND), ["node-0-gpu-0"]),
    "one frees, one makes": ((SECOND,), free(SECOND), make(FIRST), ["node-0-gpu-0"]),
    "made and freed": ((), make(FIRST), free(FIRST), CONTRADICTION),
    "freed and made": ((FIRST,), free(FIRST), make(FIRST), CONTRADICTION),
    "two free": ((FIRST, SECOND), free(FIRST), free(SECOND), []),
    "two free on two nodes": ((FIRST, ELSEWHERE), free(FIRST), free(ELSEWHERE), []),
    "the last is freed while one is made elsewhere": ((FIRST,), free(FIRST), make(ELSEWHERE), ["node-1-gpu-0"]),
    "one is made while the last is freed elsewhere": ((FIRST,), make(ELSEWHERE), free(FIRST), ["node-1-gpu-0"]),
    "sync beside making": ((SECOND,), run_sync, make(FIRST), ["node-0-gpu-0", "node-0-gpu-1"]),
    "sync beside freeing": ((FIRST, SECOND), run_sync, free(SECOND), ["node-0-gpu-0"]),
    "sync beside freeing the last": ((FIRST,), run_sync, free(FIRST), []),
    "making beside sync": ((SECOND,), make(FIRST), run_sync, ["node-0-gpu-0", "node-0-gpu-1"]),
}


def taking_all_with_it(writer):
    """A namespace that goes takes with it what is in it, and nothing is made in one that there is not."""
    store = writer.store

    def before(_, sent):
        if sent.verb == "create" and sent.resource in (PODS, RESOURCE_CLAIMS) and SPACE not in store.names(NAMESPACES):
            raise NotFound(f'namespaces "{SPACE}" not found')
        if sent.resource is NAMESPACES and sent.verb == "delete":
            for key in [key for key in store.objects if key[1] == SPACE]:
                del store.objects[key]

    writer.before = before
    return writer


@pytest.mark.parametrize("name", PAIRS)
def test_wherever_one_command_comes_in_between_the_fillers_are_those_that_are_declared(name):
    present, one, other, expected = PAIRS[name]
    alone = Memory(fleet_with(*present))
    one(alone)
    assert len(alone.sent) > 3
    for number in range(1, len(alone.sent) + 1):
        store = fleet_with(*present)
        writer = taking_all_with_it(Memory(store))

        def meet(current, _, number=number, store=store):
            if current == number:
                other(taking_all_with_it(Memory(store)))

        writer.before_any = meet
        one(writer)
        when = f"{name}: before {alone.sent[number - 1]}, which is number {number}"
        assert declared_fillers(store) == fillers(store) == filler_claims(store), when
        assert expected in (CONTRADICTION, fillers(store)), when
        assert bool(leftovers(store)) == bool(fillers(store)), when
        resting = Memory(store)
        run_sync(resting)
        assert resting.writes == [], when


def test_a_filler_of_a_node_that_was_added_meanwhile_stays():
    store = fleet_with(FIRST, ELSEWHERE)
    node = store.one(NODES, "node-0")
    assert list(reconcile_fillers(Memory(store), {"node-0": hardware_of(node)}, {"node-0": node})) == []


@pytest.mark.parametrize("lost", [keys.HARDWARE_ANNOTATION, keys.KWOK_NODE_KEY])
def test_fillers_of_a_node_that_cannot_be_read_any_more_stay(lost):
    store = fleet_with(FIRST)
    node = store.one(NODES, "node-0")
    bare = hardware_of(node).with_gpu(0, hardware_of(node).gpu(1))
    store.edit(NODES, "node-0", lambda item: item["metadata"]["annotations"].pop(lost))
    writer = Memory(store)
    assert list(reconcile_fillers(writer, {"node-0": bare}, {"node-0": node}, whole=False)) == []
    assert writer.writes == []


@pytest.mark.parametrize("left", [True, False], ids=["its fillers go", "none is made"])
@pytest.mark.parametrize("annotations", [None, {}], ids=["gone", "somebody else's by now"])
def test_a_node_that_is_no_more_has_no_fillers(annotations, left):
    store = fleet_with(FIRST)
    node = store.one(NODES, "node-0")
    store.remove(NODES, "node-0")
    if annotations is not None:
        store.put(NODES, fleet.node("node-0"))
    asked = hardware_of(node)
    if left:
        # As read before the GPU was declared busy.
        asked = asked.with_gpu(0, asked.gpu(1))
    else:
        store.remove(PODS, "node-0-gpu-0", SPACE)
    list(reconcile_fillers(Memory(store), {"node-0": asked}, {"node-0": node}, whole=False))
    assert leftovers(store) == []


def test_each_node_in_question_is_asked_for_once_before_and_once_after_and_no_other():
    store = fleet.cluster(3, gpus=2)
    make("node-2")(Memory(store))
    writer = Memory(store)
    nodes = {node["metadata"]["name"]: node for node in store.all(NODES)}
    hardware = {name: hardware_of(node) for name, node in nodes.items()}
    store.remove(PODS, "node-2-gpu-0", SPACE)
    list(reconcile_fillers(writer, hardware, nodes))
    assert [str(sent) for sent in writer.sent if sent.resource is NODES] == ["get nodes/node-2"] * 2


def test_a_priority_class_that_goes_with_the_namespace_is_made_again():
    store = fleet_with()
    writer = Memory(store)

    def go(_, sent):
        if sent.resource is PODS:
            writer.before = lambda _, sent: None
            store.remove(PRIORITY_CLASSES, f"{SPACE}-0")
            raise Forbidden(f'pods "x" is forbidden: no PriorityClass with name {SPACE}-0 was found')

    writer.before = go
    make(FIRST)(writer)
    assert fillers(store) == ["node-0-gpu-0"]
    assert store.names(PRIORITY_CLASSES) == [f"{SPACE}-0"]
