"""Waiting for what a fault brings about: what a look costs, and how often there is one."""

import pytest

from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations import fault_waiting
from kubectl_ghost.operations.fault import FaultRequest
from kubectl_ghost.operations.fault_waiting import wait_down, wait_left
from kubectl_ghost.operations.selecting import select
from tests.unit.operations import fleet
from tests.unit.operations.faults import fault
from tests.unit.operations.memory import Memory


class Clock:
    """Time that passes while somebody sleeps."""

    def __init__(self, asleep):
        self.time, self.pauses, self.asleep = 0.0, [], asleep

    def monotonic(self):
        return self.time

    def sleep(self, seconds):
        self.time += seconds
        self.pauses.append(seconds)
        self.asleep(len(self.pauses))


@pytest.fixture
def clock(monkeypatch):
    def wind(asleep=lambda number: None):
        clock = Clock(asleep)
        monkeypatch.setattr(fault_waiting, "time", clock)
        return clock

    return wind


def ready(store, status, *names):
    condition = [{"type": "Ready", "status": status}]
    for name in names or store.names(NODES):
        store.edit(NODES, name, lambda item: item["status"].update(conditions=condition))


def quiet(done, total):
    """Nobody looks at the progress."""


@pytest.mark.parametrize("count", [2, 25])
def test_nodes_are_down_when_none_is_ready(count, clock):
    store = fleet.cluster(count, gpus=1)
    ready(store, "True")
    fault(Memory(store), request=FaultRequest("node-down"), everything=True)
    names = store.names(NODES)

    def asleep(number):
        if number == 1:
            ready(store, "Unknown", *names[1:])
        if number == 2:
            ready(store, "False", names[0])

    memory = Memory(store)
    wound = clock(asleep)
    wait_down(memory, names, timeout=10, progress=quiet)
    assert len(wound.pauses) == 2
    assert len(memory.sent) == (3 if count > 20 else 3 * count)


def test_a_node_that_is_cordoned_and_ready_is_not_down(clock):
    store = fleet.cluster(25, gpus=1)
    ready(store, "False")
    ready(store, "True", "node-7")
    store.edit(NODES, "node-7", lambda item: item["spec"].update(unschedulable=True))
    clock()
    with pytest.raises(GhostError, match='node "node-7" is still Ready'):
        wait_down(Memory(store), store.names(NODES), timeout=1, progress=quiet)


@pytest.mark.parametrize("count", [2, 25])
def test_a_look_for_pods_reads_their_metadata_alone(count, clock, monkeypatch):
    store = fleet.cluster(count, gpus=1)
    store.put(PODS, fleet.pod("slow", "node-1", gpus=1))
    memory = Memory(store)
    chosen = select(memory, Selection(everything=True))
    asked = []
    ask = memory._ask
    monkeypatch.setattr(memory, "_ask", lambda request: (asked.append(request), ask(request))[1])
    clock(lambda number: store.remove(PODS, "slow") if number == 1 else None)
    wait_left(memory, chosen, {"uid-slow": ("default", "slow")}, timeout=10, progress=quiet)
    assert len(asked) == (2 if count > 20 else 2 * count)
    assert all("PartialObjectMetadataList" in request.accept for request in asked)


def test_looks_become_rarer_up_to_one_a_second(clock):
    store = fleet.cluster(1, gpus=1)
    ready(store, "True")
    wound = clock()
    with pytest.raises(GhostError, match="timed out"):
        wait_down(Memory(store), ["node-0"], timeout=20, progress=quiet)
    assert wound.pauses[0] == 0.05
    assert wound.pauses[-2] == 1.0
    assert sum(wound.pauses) == pytest.approx(20)
    assert len(wound.pauses) < 30
