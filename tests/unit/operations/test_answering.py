"""Answering: what NVIDIA's MIG manager and a machine's firmware would do when somebody asks through the Node."""

from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState
from kubectl_ghost.domain.requests import RebootSigns
from kubectl_ghost.operations.answering import answer_nodes
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.reconcile import update_node
from kubectl_ghost.operations.watch_fleet import watch_fleet
from tests.unit.operations import fleet
from tests.unit.operations.fleet import cluster, run_sync, slices_on
from tests.unit.operations.memory import Memory

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


def watched(store, rounds, idle):
    """Watch for so many rounds; `idle` is what others do while the watch waits."""
    writer = Memory(store)
    left = iter(range(rounds))
    writer.idle = idle
    problems = []
    changes = list(
        watch_fleet(writer, RebootSigns(), OVER, problem=problems.append, going_on=lambda: next(left, None) is not None)
    )
    return changes, problems, writer


def test_the_watch_answers_what_comes_while_it_waits():
    store = cluster(1, gpus=1)
    asked = []

    def others(_):
        if not asked:
            asked.append(True)
            ask(store, **{CONFIG: "all-balanced"})
            return True
        return False

    changes, problems, _ = watched(store, 1, others)
    assert labels(store) == ("all-balanced", "success")
    assert [change.resource.kind for change in changes] == ["Node", "ResourceSlice"]
    assert problems == []


def test_the_watch_brings_a_rebooted_node_back():
    store = cluster(1)
    cordon(store)
    annotate(store, ASK, "1")
    watched(store, 3, lambda _: False)
    after = hardware_of(store.one(NODES, "node-0"))
    assert (after.reboot, after.rebooted_for) == (None, f"{ASK}=1")


def test_the_watch_goes_on_beside_a_node_whose_declaration_is_damaged():
    store = cluster(2, gpus=1)
    annotate(store, "kubectl-ghost.dev/hardware", "{", "node-1")
    ask(store, **{CONFIG: "all-balanced"})
    _, problems, _ = watched(store, 1, lambda _: False)
    assert labels(store) == ("all-balanced", "success")
    assert "node-1" in problems[0].message


def test_at_rest_the_watch_writes_nothing():
    _, _, writer = watched(cluster(3), 3, lambda _: False)
    assert writer.writes == []
