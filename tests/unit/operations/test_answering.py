"""Answering: what NVIDIA's MIG manager and a machine's firmware would do when somebody asks through the Node."""

import pytest

from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState
from kubectl_ghost.domain.requests import RebootSigns
from kubectl_ghost.operations.answering import answer_nodes
from kubectl_ghost.operations.changes import Verb
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.reconcile import update_node
from tests.unit.operations import fleet
from tests.unit.operations.fleet import cluster, run_sync, slices_on
from tests.unit.operations.memory import Killed, Memory

CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
ASK = "kubectl-ghost.dev/reboot"
OVER = -2.0
"""A reboot that is over as soon as it has begun."""


def ask(store, name="node-0", **labels):
    store.edit(NODES, name, lambda item: item["metadata"]["labels"].update(labels))


def annotate(store, key, value, name="node-0"):
    store.edit(NODES, name, lambda item: item["metadata"]["annotations"].update({key: value}))


def cordon(store, name="node-0"):
    store.edit(NODES, name, lambda item: item["spec"].update(unschedulable=True))


def answer(store, signs=None):
    return list(answer_nodes(Memory(store), store.all(NODES), signs or RebootSigns(), OVER))


def labels(store, name="node-0"):
    found = store.one(NODES, name)["metadata"]["labels"]
    return found.get(CONFIG), found.get(STATE)


def devices(store, name="node-0"):
    return [device["name"] for item in slices_on(store, name) for device in item["spec"]["devices"]]


def test_a_layout_that_is_asked_for_is_made():
    store = cluster(2, gpus=1)
    ask(store, **{CONFIG: "all-balanced"})
    answer(store)
    assert labels(store) == ("all-balanced", "success")
    assert len(devices(store)) == 4
    assert devices(store, "node-1") == ["gpu-0"]
    again = Memory(store)
    assert list(answer_nodes(again, store.all(NODES), RebootSigns())) == []
    assert again.writes == []


def test_an_impossible_one_fails_and_leaves_the_gpus_as_they_are():
    store = cluster(1, gpus=1)
    for name in ("all-9g.90gb", "nonsense"):
        ask(store, **{CONFIG: name})
        answer(store)
        assert labels(store) == (name, "failed")
        assert devices(store) == ["gpu-0"]


def test_a_layout_fails_while_pods_hold_what_would_go():
    store = cluster(1, gpus=1)
    fleet.holding(store, "p", "node-0", "gpu-0")
    ask(store, **{CONFIG: "all-balanced"})
    answer(store)
    assert labels(store) == ("all-balanced", "failed")
    assert devices(store) == ["gpu-0"]
    store.remove(PODS, "p")
    ask(store, **{CONFIG: "all-1g.10gb"})
    answer(store)
    assert labels(store) == ("all-1g.10gb", "success")


def test_a_request_stands_until_it_is_answered_whatever_else_is_done_to_the_node():
    store = cluster(1, gpus=1)
    ask(store, **{CONFIG: "all-balanced"})
    broken = GpuState(faults=(Fault("thermal"),))
    update_node(Memory(store), store.one(NODES, "node-0"), lambda old: old.with_gpu(0, broken))
    assert labels(store) == ("all-balanced", None)
    run_sync(Memory(store))
    assert labels(store) == ("all-balanced", "success")
    assert hardware_of(store.one(NODES, "node-0")).gpu(0).faults == broken.faults


def test_a_node_that_is_drained_and_asked_to_reboots_once():
    store = cluster(1)
    update_node(
        Memory(store), store.one(NODES, "node-0"), lambda old: old.with_gpu(0, GpuState(faults=(Fault("xid", 79),)))
    )
    annotate(store, ASK, "1")
    answer(store)
    assert hardware_of(store.one(NODES, "node-0")).reboot is None
    cordon(store)
    store.put(PODS, fleet.pod("p", "node-0"))
    answer(store)
    assert hardware_of(store.one(NODES, "node-0")).reboot is None
    store.remove(PODS, "p")
    answer(store)
    assert "kubectl-ghost.dev/node-down" in store.one(NODES, "node-0")["metadata"]["annotations"]
    run_sync(Memory(store))
    after = hardware_of(store.one(NODES, "node-0"))
    assert after.reboot is None
    assert after.gpu(0).faults == ()
    again = Memory(store)
    run_sync(again)
    assert again.writes == []


def test_another_request_reboots_again_and_none_is_forgotten():
    store = cluster(1)
    cordon(store)
    for value in ("1", "2"):
        annotate(store, ASK, value)
        answer(store)
        assert hardware_of(store.one(NODES, "node-0")).reboot is not None
        run_sync(Memory(store))
    store.edit(NODES, "node-0", lambda item: item["metadata"]["annotations"].pop(ASK))
    answer(store)
    assert hardware_of(store.one(NODES, "node-0")).rebooted_for == ""
    annotate(store, ASK, "2")
    answer(store)
    assert hardware_of(store.one(NODES, "node-0")).reboot is not None


def test_a_condition_of_a_remediation_tool_counts_if_it_is_named():
    store = cluster(1)
    cordon(store)
    true = {"type": "Rebooting", "status": "True", "lastTransitionTime": "t"}
    store.edit(NODES, "node-0", lambda item: item["status"].setdefault("conditions", []).append(true))
    answer(store)
    assert hardware_of(store.one(NODES, "node-0")).reboot is None
    answer(store, RebootSigns(conditions=("Rebooting",)))
    assert hardware_of(store.one(NODES, "node-0")).reboot is not None


def test_a_layout_that_is_asked_for_while_another_is_made_is_not_lost():
    def scene():
        store = cluster(1, gpus=1)
        ask(store, **{CONFIG: "all-balanced"})
        return store

    whole = Memory(scene())
    list(answer_nodes(whole, whole.store.all(NODES), RebootSigns(), OVER))
    assert len(whole.writes) >= 3
    for moment in range(1, len(whole.writes) + 1):
        store = scene()
        memory = Memory(store)

        def other(number, sent, moment=moment, store=store):
            if number == moment:
                ask(store, **{CONFIG: "all-1g.10gb"})

        memory.before = other
        list(answer_nodes(memory, store.all(NODES), RebootSigns(), OVER))
        assert labels(store)[0] == "all-1g.10gb", f"asked before {whole.writes[moment - 1]}"
        answer(store)
        assert labels(store) == ("all-1g.10gb", "success")
        assert len(devices(store)) == 7
        again = Memory(store)
        run_sync(again)
        assert again.writes == []


@pytest.mark.parametrize("moment", [1, 2, 3])
def test_a_layout_is_finished_beside_somebody_who_writes_to_the_node(moment):
    store = cluster(1, gpus=1)
    ask(store, **{CONFIG: "all-balanced"})
    memory = Memory(store)
    memory.before = lambda number, _: annotate(store, "others", "write") if number == moment else None
    list(answer_nodes(memory, store.all(NODES), RebootSigns(), OVER))
    assert labels(store) == ("all-balanced", "success")
    again = Memory(store)
    run_sync(again)
    assert again.writes == []


def test_a_pod_that_comes_while_a_layout_is_made_is_seen_after_the_conflict():
    store = cluster(1, gpus=1)
    ask(store, **{CONFIG: "all-balanced"})
    memory = Memory(store)

    def place(number, _):
        if number == 1:
            fleet.holding(store, "p", "node-0", "gpu-0")
            annotate(store, "others", "write")

    memory.before = place
    list(answer_nodes(memory, store.all(NODES), RebootSigns(), OVER))
    assert labels(store) == ("all-balanced", "failed")
    assert devices(store) == ["gpu-0"]


def test_a_node_that_others_write_to_all_the_time_is_given_up():
    store = cluster(1, gpus=1)
    ask(store, **{CONFIG: "all-balanced"})
    memory = Memory(store)
    memory.before = lambda number, _: annotate(store, "others", str(number))
    with pytest.raises(GhostError, match="changed by others all the time"):
        list(answer_nodes(memory, store.all(NODES), RebootSigns(), OVER))


def test_nodes_that_ask_for_nothing_cost_no_request():
    store = cluster(3, gpus=1)
    annotate(store, ASK, "1")
    memory = Memory(store)
    assert list(answer_nodes(memory, store.all(NODES), RebootSigns(), OVER)) == []
    assert memory.sent == []


def test_many_nodes_are_answered_at_a_time(monkeypatch):
    store = cluster(3, gpus=1)
    for name in store.names(NODES):
        ask(store, name, **{CONFIG: "all-balanced"})
    together = []

    def run(function, items):
        together.append(len(items))
        return map(function, items)

    monkeypatch.setattr("kubectl_ghost.operations.answering.run_ordered", run)
    answer(store)
    assert together == [3]
    assert {labels(store, name) for name in store.names(NODES)} == {("all-balanced", "success")}


def test_it_is_pending_before_it_is_answered_and_a_kill_in_between_is_finished():
    store = cluster(1, gpus=1)
    ask(store, **{CONFIG: "all-balanced"})
    with pytest.raises(Killed):
        list(answer_nodes(Memory(store).kill_before(2), store.all(NODES), RebootSigns()))
    assert labels(store) == ("all-balanced", "pending")
    answer(store)
    assert labels(store) == ("all-balanced", "success")


def test_why_it_failed_is_told():
    store = cluster(2, gpus=1)
    fleet.holding(store, "p", "node-1", "gpu-0")
    ask(store, "node-0", **{CONFIG: "nonsense"})
    ask(store, "node-1", **{CONFIG: "all-balanced"})
    told = []
    list(answer_nodes(Memory(store), store.all(NODES), RebootSigns(), OVER, told.append))
    assert sorted(told) == [
        'node "node-0": nvidia.com/mig.config=nonsense failed: unknown MIG configuration "nonsense"',
        'node "node-1": nvidia.com/mig.config=all-balanced failed: 1 pod in the way: default/p',
    ]


def test_a_reboot_is_told_by_its_name_when_it_begins_and_when_it_is_over():
    store = cluster(1)
    cordon(store)
    annotate(store, ASK, "1")
    assert answer(store)[0].verb is Verb.REBOOTING
    assert run_sync(Memory(store))[0].verb is Verb.REBOOTED
