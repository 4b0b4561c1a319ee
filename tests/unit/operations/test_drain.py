"""Draining: what is asked of the server, what is said, and going on after any end. Time is faked."""

from types import SimpleNamespace

import pytest

from kubectl_ghost.cluster.errors import Conflict, Forbidden, NotFound, ServerError
from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.draining import DrainRules
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.operations import drain
from kubectl_ghost.operations.cordon import read_nodes, set_schedulable
from kubectl_ghost.operations.drain import DAEMON_SETS, DrainRequest, combined, drain_nodes
from tests.unit.operations import fleet
from tests.unit.operations.memory import Killed, Memory

WEB = ("ReplicaSet", "web")


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that stands still but for sleeping; a test may let something happen at a time."""
    clock = SimpleNamespace(now=0.0, happen={})
    clock.monotonic = lambda: clock.now

    def sleep(seconds):
        assert seconds > 0
        clock.now += seconds
        assert clock.now < 1000, "it waits for ever"
        for moment in [moment for moment in clock.happen if moment <= clock.now]:
            clock.happen.pop(moment)()

    clock.sleep = sleep
    monkeypatch.setattr(drain, "time", clock)
    monkeypatch.setattr(drain, "run_ordered", map)
    return clock


@pytest.fixture
def store():
    """Two nodes; on the first, two pods of a controller."""
    store = fleet.cluster(2)
    for name in ("web-0", "web-1"):
        store.put(PODS, fleet.pod(name, "node-0", owner=WEB))
    return store


def run(memory, *names, then=None, **request):
    """Drain nodes; returns what happened, what was told, and the failures."""
    told, failures = [], {}
    nodes = read_nodes(memory, names or ["node-0"], None, "drain")
    changes = drain_nodes(memory, nodes, DrainRequest(**request), told.append, failures, then)
    return [f"{change.name} {change.verb}" for change in changes], told, failures


def cordoned(store, name="node-0"):
    return store.one(NODES, name)["spec"].get("unschedulable")


def test_nodes_are_cordoned_then_their_pods_evicted(store):
    memory = Memory(store)
    changes, told, failures = run(memory)
    assert changes == [
        "node-0 cordoned",
        "web-0 evicting",
        "web-1 evicting",
        "web-0 evicted",
        "web-1 evicted",
        "node-0 drained",
    ]
    assert (told, failures) == ([], {})
    assert cordoned(store)
    assert not cordoned(store, "node-1")
    assert list(map(str, memory.writes)) == ["patch nodes/node-0", "evict pods/web-0", "evict pods/web-1"]


def test_a_second_time_nothing_is_written(store):
    run(Memory(store))
    memory = Memory(store)
    assert run(memory)[0] == ["node-0 already cordoned", "node-0 drained"]
    assert memory.writes == []


def test_pods_elsewhere_stay(store):
    store.put(PODS, fleet.pod("far", "node-1", owner=WEB))
    run(Memory(store))
    assert store.names(PODS) == ["far"]


def test_a_refusal_leaves_every_pod_and_tells_all_reasons(store):
    store.put(PODS, fleet.pod("bare", "node-0"))
    store.put(PODS, fleet.pod("agent-x", "node-0", owner=("DaemonSet", "agent")))
    store.put(DAEMON_SETS, {"metadata": {"name": "agent"}})
    changes, _, failures = run(Memory(store))
    assert changes == ["node-0 cordoned"]
    assert len(store.names(PODS)) == 4
    assert failures["node-0"].message == (
        'unable to drain node "node-0" due to error: ['
        "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): default/agent-x, "
        "cannot delete Pods that declare no controller (use --force to override): default/bare]"
    )
    assert "uncordon node-0" in failures["node-0"].hint


def test_what_a_flag_lets_pass_is_warned_of(store):
    store.put(PODS, fleet.pod("agent-x", "node-0", owner=("DaemonSet", "agent")))
    store.put(DAEMON_SETS, {"metadata": {"name": "agent"}})
    _, told, failures = run(Memory(store), rules=DrainRules(ignore_daemonsets=True))
    assert told == ["Warning: ignoring DaemonSet-managed Pods: default/agent-x"]
    assert failures == {}
    assert store.names(PODS) == ["agent-x"]


def test_a_node_that_cannot_be_drained_does_not_keep_the_others(store):
    store.put(PODS, fleet.pod("bare", "node-0"))
    store.put(PODS, fleet.pod("far", "node-1", owner=WEB))
    changes, told, failures = run(Memory(store), "node-0", "node-1")
    assert changes == ["node-0 cordoned", "node-1 cordoned", "far evicting", "far evicted", "node-1 drained"]
    assert list(failures) == ["node-0"]
    assert told[0].endswith("default/bare, continuing command...")


def test_a_blocked_pod_is_tried_until_its_budget_allows(store, clock):
    store.budgets["web-1"] = "keep"
    clock.happen[3.1] = store.budgets.clear
    memory = Memory(store)
    changes, told, failures = run(memory)
    assert changes[-3:] == ["web-0 evicted", "web-1 evicted", "node-0 drained"]
    assert failures == {}
    assert told == [
        'error when evicting pods/"web-1" -n "default" (will retry after 1s): blocked by PodDisruptionBudget "keep": '
        "The disruption budget keep needs 1 healthy pods and has 1 currently"
    ]
    assert 4 <= [str(sent) for sent in memory.writes].count("evict pods/web-1") <= 5
    assert 3.1 <= clock.now < 4.5


def test_when_time_is_over_each_blocked_pod_and_its_budget_are_named(store, clock):
    store.budgets.update({"web-0": "keep", "web-1": "hold"})
    changes, _, failures = run(Memory(store), timeout=5.0)
    assert "node-0 drained" not in changes
    assert clock.now == pytest.approx(5)
    message = failures["node-0"].message
    for pod, budget in (("web-0", "keep"), ("web-1", "hold")):
        assert f'pods/"{pod}" -n "default": global timeout reached: 5s: blocked by PodDisruptionBudget "{budget}"' in (
            message
        )
    assert cordoned(store)
    assert store.names(PODS) == ["web-0", "web-1"]


def test_a_pod_that_does_not_end_is_waited_for_and_named(store, clock):
    store.edit(PODS, "web-0", lambda item: item["metadata"].update(finalizers=["example.com/keep"]))
    _, _, failures = run(Memory(store), timeout=2.0)
    assert failures["node-0"].message.endswith(
        'error when waiting for pod "web-0" in namespace "default" to terminate: global timeout reached: 2s'
    )
    assert store.names(PODS) == ["web-0"]


def test_a_pod_of_the_same_name_is_another_one(store):
    def replaced(_, sent):
        if str(sent) == "evict pods/web-0":
            store.remove(PODS, "web-0")
            store.put(PODS, {**fleet.pod("web-0", "node-1", owner=WEB), "metadata": {"name": "web-0", "uid": "new"}})

    memory = Memory(store)
    memory.before = replaced
    changes, told, failures = run(memory)
    assert "web-0 evicted" in changes
    assert (told, failures) == ([], {})
    assert store.names(PODS) == ["web-0"]


def test_what_the_server_cannot_do_is_told_with_the_pods_name(store):
    def fail(_, sent):
        if str(sent) == "evict pods/web-0":
            raise ServerError("Error from server: more than one PodDisruptionBudget")

    memory = Memory(store)
    memory.before = fail
    assert 'pods/"web-0" -n "default": Error from server: more than' in run(memory)[2]["node-0"].message


def test_pods_of_a_namespace_that_is_going_go_with_it(store, clock):
    def forbid(_, sent):
        if sent.verb == "evict":
            raise Forbidden("forbidden", details={"causes": [{"reason": "NamespaceTerminating"}]})

    memory = Memory(store)
    memory.before = forbid
    clock.happen[2] = lambda: [store.remove(PODS, name) for name in ("web-0", "web-1")]
    changes, _, failures = run(memory)
    assert changes[-1] == "node-0 drained"
    assert failures == {}


def test_who_may_not_evict_is_told_at_once(store):
    def forbid(_, sent):
        if sent.verb == "evict":
            raise Forbidden("pods/eviction is forbidden")

    memory = Memory(store)
    memory.before = forbid
    with pytest.raises(Forbidden):
        run(memory)


@pytest.mark.parametrize("method", ["evict", "delete"])
@pytest.mark.parametrize("grace", [None, 0, 30])
def test_the_grace_period_is_passed_on(store, monkeypatch, method, grace):
    real, given = getattr(Memory, method), []

    def recording(*arguments, grace_seconds, **rest):
        given.append(grace_seconds)
        return real(*arguments, grace_seconds=grace_seconds, **rest)

    monkeypatch.setattr(Memory, method, recording)
    run(Memory(store), grace_seconds=grace, disable_eviction=method == "delete")
    assert given == [grace, grace]


def test_disabled_eviction_deletes_past_every_budget(store):
    store.budgets.update({"web-0": "keep"})
    changes, _, failures = run(Memory(store), disable_eviction=True)
    assert changes == ["node-0 cordoned", "web-0 deleted", "web-1 deleted", "node-0 drained"]
    assert failures == {}


def test_only_selected_pods_go(store):
    store.put(PODS, fleet.pod("other", "node-0", owner=WEB, labels={"app": "other"}))
    run(Memory(store), pod_selector="app=other")
    assert store.names(PODS) == ["web-0", "web-1"]


def test_a_selector_that_the_server_does_not_take_is_told_before_anything_is_written(store):
    memory = Memory(store)

    def refuse(_, sent):
        if sent.query.get("labelSelector") == "???":
            raise GhostError("unable to parse requirement")

    memory.before_any = refuse
    with pytest.raises(GhostError, match="unable to parse"):
        run(memory, pod_selector="???")
    assert memory.writes == []


@pytest.mark.parametrize("mode", [DryRun.CLIENT, DryRun.SERVER])
def test_a_dry_run_evicts_nobody(store, mode):
    changes, _, failures = run(Memory(store, dry_run=mode))
    assert changes == ["node-0 cordoned", "web-0 evicting", "web-1 evicting", "node-0 drained"]
    assert failures == {}
    assert store.names(PODS) == ["web-0", "web-1"]


def test_a_dry_run_without_eviction_says_what_would_be_deleted(store):
    changes = run(Memory(store, dry_run=DryRun.CLIENT), disable_eviction=True)[0]
    assert changes == ["node-0 cordoned", "web-0 deleted", "web-1 deleted", "node-0 drained"]
    assert store.names(PODS) == ["web-0", "web-1"]


def test_a_server_dry_run_tells_of_a_budget_at_once(store, clock):
    store.budgets["web-0"] = "keep"
    assert 'PodDisruptionBudget "keep"' in run(Memory(store, dry_run=DryRun.SERVER))[2]["node-0"].message
    assert clock.now == 0


def test_killed_before_any_write_the_same_command_goes_on(store):
    for number in range(1, 4):
        twin = store.copy()
        with pytest.raises(Killed):
            run(Memory(twin).kill_before(number))
        assert run(Memory(twin))[2] == {}
        assert twin.names(PODS) == []
        assert cordoned(twin)


def test_a_node_of_others_is_not_touched(store):
    store.put(NODES, fleet.node("real"))
    store.put(NODES, fleet.node("theirs", annotations=fleet.FAKE))
    for name in ("real", "theirs"):
        with pytest.raises(GhostError, match="not simulated by kubectl-ghost") as error:
            read_nodes(Memory(store), ["node-0", name], None, "drain")
        assert error.value.hint == f"For a node of others use: kubectl drain {name}"
    with pytest.raises(GhostError, match='"real" is not simulated'):
        read_nodes(Memory(store), [], "", "drain")


def test_nodes_are_named_once_and_as_output_name_prints_them(store):
    names = ["node/node-1", "node-0", "nodes/node-0"]
    assert [node["metadata"]["name"] for node in read_nodes(Memory(store), names, None, "x")] == ["node-1", "node-0"]
    with pytest.raises(NotFound):
        read_nodes(Memory(store), ["nope"], None, "drain")
    selected = read_nodes(Memory(store), [], f"{keys.POOL_LABEL}=node", "drain")
    assert [node["metadata"]["name"] for node in selected] == ["node-0", "node-1"]


def schedulable(memory, *, to):
    nodes = read_nodes(memory, ["node-0"], None, "cordon")
    return [str(change.verb) for change in set_schedulable(memory, nodes, schedulable=to)]


def test_cordon_and_uncordon(store):
    memory = Memory(store)
    assert schedulable(memory, to=True) == ["already uncordoned"]
    assert schedulable(memory, to=False) == ["cordoned"]
    assert schedulable(memory, to=False) == ["already cordoned"]
    assert schedulable(memory, to=True) == ["uncordoned"]
    assert len(memory.writes) == 2
    assert not cordoned(store)


def test_who_cordons_meanwhile_is_not_overwritten(store):
    memory = Memory(store)

    def meanwhile(number, _):
        if number == 1:
            store.edit(NODES, "node-0", lambda item: item["metadata"]["labels"].update(a="b"))

    memory.before = meanwhile
    assert schedulable(memory, to=False) == ["cordoned"]
    assert store.one(NODES, "node-0")["metadata"]["labels"]["a"] == "b"

    def always(_, __):
        store.edit(NODES, "node-0", lambda item: item["metadata"]["labels"].update(a=str(store.version)))

    memory.before = always
    with pytest.raises(Conflict):
        schedulable(memory, to=True)


def test_several_failures_are_one_error():
    first, second = GhostError("one", "hint"), GhostError("two")
    assert combined([first]) is first
    assert combined([first, second]).message == "one\nerror: two"
