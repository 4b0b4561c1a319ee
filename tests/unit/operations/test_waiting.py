"""Waiting: for what can become Ready, as long as it makes sense, and with a word on what keeps it. Time is faked."""

from types import SimpleNamespace

import pytest

from kubectl_ghost.cluster.errors import Gone
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.operations import waiting
from kubectl_ghost.operations.fleet import OURS
from tests.unit.operations import fleet
from tests.unit.operations.memory import Memory


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still but for sleeping and waiting."""
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = lambda: clock.now

    def sleep(seconds):
        clock.now += seconds

    clock.sleep = sleep
    monkeypatch.setattr(waiting, "time", clock)
    return clock


def ready(store, name, status="True"):
    conditions = [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": status}]
    store.edit(NODES, name, lambda item: item["status"].update(conditions=conditions))


def down(store, name):
    store.edit(NODES, name, lambda item: item["metadata"]["annotations"].update({keys.NODE_DOWN_ANNOTATION: "gone"}))


def wait(reader, *, timeout=300.0, names=None):
    """Wait for a store's nodes; returns the steps of the progress."""
    steps = []
    waiting.wait_ready(
        reader,
        OURS,
        names or reader.store.names(NODES),
        timeout=timeout,
        progress=lambda *step: steps.append(step),
    )
    return steps


def reader(clock, *happenings, count=3):
    """A fleet in which something happens during each watch, and nothing for a watch's whole time in the end.

    A watch goes on after a happening that returns True.
    """
    memory = Memory(fleet.cluster(count))
    left = list(happenings)
    memory.watched = []

    def idle(timeout):
        memory.watched.append(timeout)
        if left:
            return left.pop(0)(memory.store)
        clock.now += timeout
        return False

    memory.idle = idle
    return memory


def every(status="True"):
    return lambda store: [ready(store, name, status) for name in store.names(NODES)]


def test_it_ends_when_all_are_ready(clock):
    steps = wait(reader(clock, every()))
    assert steps[-1] == (3, 3)
    assert clock.now == 1000


def test_who_is_ready_already_is_not_watched_for(clock):
    memory = reader(clock)
    every()(memory.store)
    assert wait(memory) == [(1, 3), (2, 3), (3, 3)]
    assert memory.watched == []


def test_a_node_that_is_declared_down_is_not_waited_for(clock):
    memory = reader(clock, lambda store: [ready(store, name) for name in ("node-0", "node-2")])
    down(memory.store, "node-1")
    assert wait(memory)[-1] == (3, 3)


def test_nor_is_one_that_is_declared_down_meanwhile(clock):
    wait(reader(clock, lambda store: down(store, "node-0"), count=1))


def test_other_nodes_of_the_pool_are_not_waited_for(clock):
    wait(reader(clock, lambda store: ready(store, "node-1")), names=["node-1"])


def test_one_that_is_not_ready_is_not_taken_for_ready(clock):
    memory = reader(clock, every("False"), every("Unknown"), every())
    assert wait(memory)[-1] == (3, 3)
    assert len(memory.watched) == 3


def test_a_node_that_is_deleted_meanwhile_is_told_of_at_once(clock):
    def happen(store):
        store.remove(NODES, "node-1")
        return True

    with pytest.raises(GhostError, match='node "node-1" was deleted while waiting'):
        wait(reader(clock, happen))
    assert clock.now == 1000


def test_one_that_was_ready_before_it_was_deleted_is_not_missed(clock):
    def happen(store):
        ready(store, "node-1")
        store.remove(NODES, "node-1")

    assert wait(reader(clock, happen, every()))[-1] == (3, 3)


def test_when_none_becomes_ready_kwok_is_asked_about(clock):
    with pytest.raises(GhostError) as error:
        wait(reader(clock))
    assert error.value.message == (
        'none of 3 nodes became Ready within 30 seconds (node "node-0" is still Unknown): '
        "is kwok running in this cluster?"
    )
    assert "kubectl ghost stages" in error.value.hint
    assert clock.now == 1030


def test_patience_begins_anew_with_each_node_that_becomes_ready(clock):
    def slowly(name):
        def happen(store):
            clock.now += 25
            ready(store, name)

        return happen

    wait(reader(clock, *map(slowly, ["node-0", "node-1", "node-2"])))
    assert clock.now == 1075


def test_when_it_stops_halfway_how_far_it_came_is_told(clock):
    with pytest.raises(GhostError, match="only 1 of 3 nodes became Ready within 30 seconds"):
        wait(reader(clock, lambda store: ready(store, "node-0")))


def test_when_time_is_over_and_some_are_ready_the_rest_is_told(clock):
    with pytest.raises(GhostError) as error:
        wait(reader(clock, lambda store: ready(store, "node-0")), timeout=10)
    assert error.value.message == ('timed out: only 1 of 3 nodes became Ready in time (node "node-1" is still Unknown)')
    assert "--timeout" in error.value.hint


def test_when_time_is_over_and_none_is_ready_kwok_is_asked_about(clock):
    with pytest.raises(GhostError, match=r"timed out: none of 3 nodes .* is kwok running") as error:
        wait(reader(clock), timeout=10)
    assert "kubectl ghost stages" in error.value.hint
    assert clock.now == 1010


def test_a_watch_lasts_no_longer_than_there_is_time(clock):
    memory = reader(clock)
    with pytest.raises(GhostError):
        wait(memory, timeout=7)
    assert memory.watched == [7]


def test_a_version_that_the_server_has_forgotten_is_listed_anew(clock):
    def forget(store):
        every()(store)
        raise Gone("too old")

    assert wait(reader(clock, forget))[-1] == (3, 3)


def test_nothing_to_wait_for_asks_nothing(clock):
    memory = Memory()
    wait(memory, names=[])
    assert memory.sent == []


def uids(store):
    return {item["metadata"]["uid"] for item in store.all(NODES)}


def test_gone_is_waited_for_until_none_of_these_is_left(clock, monkeypatch):
    memory = Memory(fleet.cluster(2))
    going = uids(memory.store)
    memory.store.remove(NODES, "node-0")

    def sleep(seconds):
        clock.now += seconds
        if clock.now > 1001 and memory.store.names(NODES):
            memory.store.remove(NODES, "node-1")

    monkeypatch.setattr(clock, "sleep", sleep)
    waiting.wait_gone(memory, OURS, going, timeout=30)
    assert 1001 < clock.now < 1002


def test_a_node_that_has_the_name_of_one_that_went_is_another(clock):
    memory = Memory(fleet.cluster(1))
    going = uids(memory.store)
    memory.store.remove(NODES, "node-0")
    fleet.add_pool(Memory(memory.store), count=1)
    waiting.wait_gone(memory, OURS, going, timeout=30)
    assert clock.now == 1000


@pytest.mark.parametrize(
    ("finalizers", "told"), [(["example.com/keep"], "example.com/keep"), (None, "nothing that is known")]
)
def test_what_keeps_a_node_is_named_when_time_is_over(clock, finalizers, told):
    memory = Memory(fleet.cluster(1))
    if finalizers:
        memory.store.edit(NODES, "node-0", lambda item: item["metadata"].update(finalizers=finalizers))
    with pytest.raises(GhostError, match=f'node "node-0" is marked for deletion and still there; finalizers: {told}$'):
        waiting.wait_gone(memory, OURS, uids(memory.store), timeout=3)
    assert 1003 <= clock.now < 1004
