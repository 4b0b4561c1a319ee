"""`sync --watch --template`: nodes that appear while it runs."""

import pytest

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.domain.requests import RebootSigns
from kubectl_ghost.operations.watch_fleet import watch_fleet
from tests.unit.operations.autoscaler import LABEL, ROOM, TEMPLATE, adopt, cluster, live, worker
from tests.unit.operations.memory import Memory

pytestmark = pytest.mark.usefixtures("order")


def watch(writer, rounds, problems):
    """Watch for so many rounds; what happens between them is the writer's `idle`."""
    left = iter([True] * rounds)
    found = watch_fleet(
        writer,
        RebootSigns(),
        0.0,
        problem=lambda error: problems.append(error.message),
        going_on=lambda: next(left, False),
        template=TEMPLATE,
    )
    return [(change.verb.value, change.name) for change in found]


def test_watching_adopts_what_appears_once_kwok_has_initialised_it():
    store = cluster()
    writer = Memory(store)
    steps = iter(
        [
            lambda: store.put(NODES, {**worker("late"), "status": {}}),
            lambda: store.edit(NODES, "late", lambda item: item.update(status=worker("late")["status"])),
        ]
    )

    waits = []

    def idle(seconds):
        step = next(steps, None)
        waits.append(seconds)
        if step is not None:
            step()
        return step is not None

    writer.idle = idle
    problems = []
    assert [name for verb, name in watch(writer, 1, problems) if verb == "adopted"] == ["worker-0", "worker-b"]
    # It is by what it has seen that the round has ended, not by its time; the last is for those that come with it.
    assert [seconds > 1 for seconds in waits] == [True, True, False]
    assert [name for verb, name in watch(writer, 1, problems) if verb == "adopted"] == ["late"]
    assert problems == []
    assert live(store, "late")["status"]["capacity"] == {**ROOM, "nvidia.com/gpu": "2"}
    assert live(store, "other")["metadata"]["labels"] == {"autoscaler": "y"}


def test_watching_looks_at_a_node_that_does_not_match_only_when_its_labels_change():
    store = cluster()
    adopt(Memory(store))
    writer = Memory(store)
    conditions = iter("ABC")

    def idle(_):
        kind = next(conditions, None)
        if kind is None:
            return False
        store.edit(NODES, "other", lambda item: item["status"]["conditions"].append({"type": kind, "status": "True"}))
        return True

    writer.idle = idle
    watch(writer, 1, [])
    # The round has gone on through all of it.
    assert next(conditions, None) is None
    assert len(live(store, "other")["status"]["conditions"]) == 4
    store.edit(NODES, "other", lambda item: item["metadata"]["labels"].update(LABEL))
    watch(writer, 1, [])
    assert live(store, "other")["status"]["capacity"]["nvidia.com/gpu"] == "2"


def test_watching_goes_on_without_its_pool_and_says_so():
    store = cluster()
    for name in ("gpu-0", "gpu-1"):
        store.remove(NODES, name)
    problems = []
    writer = Memory(store)
    assert watch(writer, 1, problems) == []
    assert problems == ['pool "gpu" not found']
    assert writer.writes == []
