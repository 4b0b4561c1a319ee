"""A reboot: how long it takes, that it ends once, and going on with it after any end. Time is faked."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState, Reboot
from kubectl_ghost.operations import drain, reboot
from kubectl_ghost.operations.drain import DrainRequest, drain_nodes
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.reboot import finish_reboots, start_reboot
from kubectl_ghost.operations.reconcile import update_node
from tests.unit.operations import fleet
from tests.unit.operations.memory import Killed, Memory

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that stands still but for sleeping; a test may let something happen at a time."""
    clock = SimpleNamespace(now=0.0, happen={})

    def sleep(seconds):
        assert seconds > 0
        clock.now += seconds
        assert clock.now < 1000, "it waits for ever"
        for moment in [moment for moment in clock.happen if moment <= clock.now]:
            clock.happen.pop(moment)()

    clock.sleep, clock.monotonic = sleep, lambda: clock.now
    for module in (drain, reboot):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(drain, "run_ordered", map)
    monkeypatch.setattr(reboot, "moment", lambda: NOON + timedelta(seconds=clock.now))
    return clock


@pytest.fixture
def store():
    """Two nodes; on the first, a pod of a controller."""
    store = fleet.cluster(2)
    store.put(PODS, fleet.pod("web", "node-0", owner=("ReplicaSet", "web")))
    return store


def annotations(store, name="node-0"):
    return store.one(NODES, name)["metadata"]["annotations"]


def start(memory, seconds=30.0, name="node-0"):
    return [str(change.verb) for change in start_reboot(memory, memory.get(NODES, name), seconds)]


def finish(memory, *names):
    steps = []
    changes = finish_reboots(memory, names or ["node-0"], lambda *step: steps.append(step))
    return [f"{change.name} {change.verb}" for change in changes if change.resource is NODES], steps


def test_a_reboot_takes_its_time_and_ends_once(store, clock):
    memory = Memory(store)
    assert start(memory) == ["rebooting"]
    assert annotations(store)[keys.NODE_DOWN_ANNOTATION] == "rebooting until 2026-01-01T12:00:30Z"
    changes, steps = finish(memory)
    assert changes == ["node-0 rebooted"]
    assert clock.now == pytest.approx(30)
    assert (steps[0], steps[-1]) == ((0, 30), (30, 30))
    assert keys.NODE_DOWN_ANNOTATION not in annotations(store)
    assert hardware_of(store.one(NODES, "node-0")).reboot is None


def test_a_reboot_that_lasts_is_gone_on_with(store, clock):
    start(Memory(store))
    clock.now = 20
    memory = Memory(store)
    assert start(memory) == ["already rebooting"]
    assert memory.writes == []
    finish(memory)
    assert clock.now == pytest.approx(30)


def test_each_node_comes_back_when_its_own_is_over(store, clock):
    memory = Memory(store)
    start(memory, 20.0, "node-0")
    start(memory, 10.0, "node-1")
    assert finish(memory, "node-0", "node-1")[0] == ["node-1 rebooted", "node-0 rebooted"]
    assert clock.now == pytest.approx(20)


def test_the_reboot_cures_what_it_cures(store):
    memory = Memory(store)
    faults = (Fault("row-remap-failure"), Fault("xid", 79))
    update_node(memory, memory.get(NODES, "node-0"), lambda old: old.with_gpu(2, GpuState(faults=faults)))
    start(memory)
    finish(memory)
    assert hardware_of(store.one(NODES, "node-0")).gpu(2).faults == (Fault("row-remap-failure"),)


def test_a_reboot_that_another_command_has_finished_is_as_good(store, clock):
    start(Memory(store))
    clock.happen[10] = lambda: declare(store, "")
    assert finish(Memory(store))[0] == ["node-0 rebooted"]


def declare(store, until):
    """What another command writes: another end of the reboot, or none."""
    memory = Memory(store)
    changed = Reboot(until, until) if until else None
    update_node(memory, memory.get(NODES, "node-0"), lambda old: replace(old, reboot=changed))


def test_a_reboot_that_another_command_has_prolonged_is_waited_for(store, clock):
    start(Memory(store))
    clock.happen[10] = lambda: declare(store, "2026-01-01T12:01:00Z")
    assert finish(Memory(store))[0] == ["node-0 rebooted"]
    assert clock.now == pytest.approx(60)


def test_killed_before_any_write_of_a_reboot_it_is_gone_on_with(store, clock):
    def whole(memory):
        nodes = [memory.get(NODES, "node-0")]
        list(drain_nodes(memory, nodes, DrainRequest(), print, {}, lambda node: start_reboot(memory, node, 30.0)))
        finish(memory)

    counting = Memory(store.copy())
    whole(counting)
    assert len(counting.writes) >= 4
    for number in range(1, len(counting.writes) + 1):
        clock.now = 0
        twin = store.copy()
        with pytest.raises(Killed):
            whole(Memory(twin).kill_before(number))
        whole(Memory(twin))
        assert hardware_of(twin.one(NODES, "node-0")).reboot is None
        assert keys.NODE_DOWN_ANNOTATION not in annotations(twin)
        assert twin.one(NODES, "node-0")["spec"]["unschedulable"]
        assert twin.names(PODS) == []
        assert clock.now == pytest.approx(30)
