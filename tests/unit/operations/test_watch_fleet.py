"""The loop of `sync --watch`: what it answers, what it survives, and what it costs."""

import pytest

from kubectl_ghost.cluster.errors import Gone, ServerError
from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState
from kubectl_ghost.domain.requests import RebootSigns
from kubectl_ghost.operations import watch_fleet as module
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.reconcile import update_node
from kubectl_ghost.operations.watch_fleet import watch_fleet
from tests.unit.operations import fleet
from tests.unit.operations.fleet import cluster
from tests.unit.operations.memory import Memory
from tests.unit.operations.test_answering import ASK, CONFIG, OVER, annotate, ask, cordon, labels

DAMAGED = "kubectl-ghost.dev/hardware"
PAST = "2026-01-01T00:00:00Z"


def watched(store, rounds, idle=lambda _: False, *, writer=None):
    """Watch for so many rounds; `idle` is what others do while the watch waits."""
    writer = writer or Memory(store)
    left = iter(range(rounds))
    writer.idle = idle
    problems = []
    changes = list(
        watch_fleet(writer, RebootSigns(), OVER, problem=problems.append, going_on=lambda: next(left, None) is not None)
    )
    return changes, [problem.message for problem in problems], writer


def once(function):
    """What others do once, the first time that the watch waits."""
    steps = [function]

    def idle(_):
        if steps:
            steps.pop()()
            return True
        return False

    return idle


def listings(writer):
    return [sent for sent in writer.sent if (sent.verb, sent.resource) == ("list", NODES)]


def ending(store, name):
    """A fault that is over."""
    over = GpuState(faults=(Fault("xid", 79, until=PAST),))
    update_node(Memory(store), store.one(NODES, name), lambda declared: declared.with_gpu(0, over))


def faults(store, name):
    return hardware_of(store.one(NODES, name)).all_faults()


def test_the_watch_answers_what_comes_while_it_waits():
    store = cluster(1, gpus=1)
    changes, problems, _ = watched(store, 2, once(lambda: ask(store, **{CONFIG: "all-balanced"})))
    assert labels(store) == ("all-balanced", "success")
    # The state is `pending` in between.
    assert [change.resource.kind for change in changes] == ["Node", "Node", "ResourceSlice"]
    assert problems == []


def test_nodes_that_are_labelled_at_once_are_answered_at_a_time(monkeypatch):
    store = cluster(4, gpus=1)
    together = []

    def run(function, items):
        together.append(len(items))
        return map(function, items)

    monkeypatch.setattr(module, "run_ordered", run)
    _, _, writer = watched(
        store, 2, once(lambda: [ask(store, name, **{CONFIG: "all-balanced"}) for name in store.names(NODES)])
    )
    assert together == [0, 4]
    assert {labels(store, name) for name in store.names(NODES)} == {("all-balanced", "success")}
    assert len(listings(writer)) == 1


def test_the_watch_brings_a_rebooted_node_back():
    store = cluster(1)
    cordon(store)
    annotate(store, ASK, "1")
    watched(store, 3)
    after = hardware_of(store.one(NODES, "node-0"))
    assert (after.reboot, after.rebooted_for) == (None, f"{ASK}=1")


def test_a_node_that_waits_for_its_pods_to_go_is_looked_at_alone(monkeypatch):
    monkeypatch.setattr(module, "_PENDING_SECONDS", 0)
    store = cluster(3)
    cordon(store)
    annotate(store, ASK, "1")
    store.put(PODS, fleet.pod("p", "node-0"))
    waits = []

    def idle(seconds):
        waits.append(seconds)
        if len(waits) == 4:
            store.remove(PODS, "p")
        return False

    _, problems, writer = watched(store, 6, idle)
    assert hardware_of(store.one(NODES, "node-0")).rebooted_for == f"{ASK}=1"
    assert len(listings(writer)) == 1
    assert [sent.query["fieldSelector"] for sent in writer.sent if sent.resource is PODS] == [
        "spec.nodeName=node-0"
    ] * 5
    assert max(waits[:4]) == 0.05
    assert problems == []


def test_the_next_look_at_a_node_with_pods_is_soon_and_else_in_half_a_minute():
    store = cluster(1)
    waits = []

    def idle(seconds):
        waits.append(seconds)
        return False

    watched(store, 1, idle)
    cordon(store)
    annotate(store, ASK, "1")
    store.put(PODS, fleet.pod("p", "node-0"))
    watched(store, 1, idle)
    assert waits == [pytest.approx(30, abs=1), pytest.approx(2, abs=0.5)]


def test_the_watch_goes_on_beside_a_node_whose_declaration_is_damaged():
    store = cluster(3, gpus=1)
    ending(store, "node-1")
    ending(store, "node-2")
    annotate(store, DAMAGED, "{", "node-1")
    ask(store, **{CONFIG: "all-balanced"})
    _, problems, _ = watched(store, 3)
    assert labels(store) == ("all-balanced", "success")
    assert faults(store, "node-2") == []
    assert len(problems) == 1
    assert "node-1" in problems[0]


def test_a_declaration_that_is_damaged_while_it_waits_is_told():
    store = cluster(2, gpus=1)
    _, problems, _ = watched(store, 2, once(lambda: annotate(store, DAMAGED, "{", "node-1")))
    assert len(problems) == 1
    assert "node-1" in problems[0]


def test_a_node_that_is_deleted_under_its_answer_is_told_and_the_others_are_answered():
    store = cluster(2, gpus=1)
    ending(store, "node-0")
    ask(store, "node-1", **{CONFIG: "all-balanced"})
    writer = Memory(store)

    def delete(number, sent):
        if sent.name == "node-0" and "node-0" in store.names(NODES):
            store.remove(NODES, "node-0")

    writer.before = delete
    _, problems, _ = watched(store, 2, writer=writer)
    assert problems == ['nodes "node-0" not found']
    assert len(listings(writer)) == 1
    assert labels(store, "node-1") == ("all-balanced", "success")


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_an_error_of_the_server_is_told_and_the_watch_goes_on_after_pauses(verb, monkeypatch):
    store = cluster(1, gpus=1)
    ask(store, **{CONFIG: "all-balanced"})
    writer = Memory(store)
    real = getattr(writer, verb)
    calls, pauses = [], []

    def fail(*arguments, **options):
        calls.append(verb)
        if len(calls) <= 3:
            raise ServerError("the server is on fire", status=500)
        return real(*arguments, **options)

    monkeypatch.setattr(writer, verb, fail)
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 1.0)
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    _, problems, _ = watched(store, 5, writer=writer)
    assert problems == ["the server is on fire"] * 3
    assert pauses == [1.0, 2.0, 4.0]
    assert labels(store) == ("all-balanced", "success")


def test_a_version_that_the_server_has_forgotten_is_no_problem(monkeypatch):
    writer = Memory(cluster(1, gpus=1))
    real, calls = writer.watch, []

    def fail(*arguments, **options):
        calls.append(True)
        if len(calls) == 1:
            raise Gone("too old", status=410)
        return real(*arguments, **options)

    monkeypatch.setattr(writer, "watch", fail)
    _, problems, _ = watched(writer.store, 2, writer=writer)
    assert problems == []
    assert len(listings(writer)) == 2


def test_only_ctrl_c_ends_it(monkeypatch):
    writer = Memory(cluster(1, gpus=1))

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watched(writer.store, 1, interrupt, writer=writer)


def test_at_rest_the_watch_writes_nothing_and_lists_once():
    _, _, writer = watched(cluster(3), 3)
    assert writer.writes == []
    assert len(listings(writer)) == len(writer.sent) == 1
