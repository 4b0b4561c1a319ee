"""Which pods a drain takes along, by kubectl's rules and in kubectl's words."""

import itertools

import pytest

from kubectl_ghost.domain.draining import DrainRules, daemon_set_of, plan_drain

DAEMON_SET, REPLICA_SET = ("DaemonSet", "agent"), ("ReplicaSet", "web")
PRESENT = {("default", "agent")}
EVERYTHING = DrainRules(force=True, ignore_daemonsets=True, delete_emptydir_data=True)
NO_CONTROLLER = "cannot delete Pods that declare no controller (use --force to override)"
LOCAL = "cannot delete Pods with local storage (use --delete-emptydir-data to override)"
DAEMONS = "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"


def pod(name="p", owner=REPLICA_SET, *, phase="Running", volume=None, annotations=None, controls=True):
    owners = [{"kind": owner[0], "name": owner[1], **({"controller": True} if controls else {})}] if owner else []
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "ownerReferences": owners,
            "annotations": annotations or {},
        },
        "spec": {"volumes": [{"name": "v", volume: {}}] if volume else []},
        "status": {"phase": phase},
    }


def names(plan):
    return [item["metadata"]["name"] for item in plan.going]


def drained(*pods, present=PRESENT, **rules):
    return plan_drain(pods, DrainRules(**rules), present)


def test_a_controllers_pod_goes_without_a_word():
    plan = drained(pod())
    assert (names(plan), plan.warnings, plan.refusals) == (["p"], [], [])


@pytest.mark.parametrize("owned", [{"owner": None}, {"controls": False}])
def test_a_pod_without_a_controller_needs_force(owned):
    plan = drained(pod(**owned))
    assert (names(plan), plan.refusals) == ([], [f"{NO_CONTROLLER}: default/p"])
    forced = drained(pod(**owned), force=True)
    assert (names(forced), forced.refusals) == (["p"], [])
    assert forced.warnings == ["deleting Pods that declare no controller: default/p"]


def test_local_storage_needs_its_flag():
    assert drained(pod(volume="emptyDir"), force=True).refusals == [f"{LOCAL}: default/p"]
    plan = drained(pod(volume="emptyDir"), delete_emptydir_data=True)
    assert (names(plan), plan.warnings) == (["p"], ["deleting Pods with local storage: default/p"])
    assert names(drained(pod(volume="configMap"))) == ["p"]


def test_a_daemon_sets_pod_is_refused_or_left_never_evicted():
    assert drained(pod(owner=DAEMON_SET), force=True).refusals == [f"{DAEMONS}: default/p"]
    plan = drained(pod(owner=DAEMON_SET), ignore_daemonsets=True)
    assert (names(plan), plan.refusals) == ([], [])
    assert plan.warnings == ["ignoring DaemonSet-managed Pods: default/p"]


def test_a_pod_whose_daemon_set_is_gone_needs_force_and_nothing_else():
    plan = drained(pod(owner=DAEMON_SET), present=set(), ignore_daemonsets=True)
    assert plan.refusals == ['cannot delete daemonsets.apps "agent" not found: default/p']
    forced = drained(pod(owner=DAEMON_SET), present=set(), force=True)
    assert (names(forced), forced.warnings) == (["p"], ['daemonsets.apps "agent" not found: default/p'])


def test_a_mirror_pod_is_skipped_without_a_word():
    mirror = pod(owner=None, annotations={"kubernetes.io/config.mirror": "x"})
    plan = drained(mirror)
    assert (plan.going, plan.warnings, plan.refusals) == ([], [], [])


def test_what_keeps_gpus_busy_is_hardware_and_stays():
    filler = pod(owner=None)
    filler["metadata"] |= {
        "namespace": "kubectl-ghost-occupancy",
        "labels": {"app.kubernetes.io/managed-by": "kubectl-ghost"},
    }
    plan = drained(filler)
    assert (plan.going, plan.warnings, plan.refusals) == ([], [], [])


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("owner", [None, REPLICA_SET, DAEMON_SET])
@pytest.mark.parametrize("volume", [None, "emptyDir"])
def test_a_finished_pod_always_goes(phase, owner, volume):
    plan = drained(pod(owner=owner, phase=phase, volume=volume))
    assert (names(plan), plan.warnings, plan.refusals) == (["p"], [], [])


def test_all_refusals_are_told_together_each_kind_once():
    pods = [pod("a", None), pod("b", DAEMON_SET), pod("c", None), pod("d"), pod("e", volume="emptyDir")]
    assert drained(*pods).refusals == [
        f"{NO_CONTROLLER}: default/a, default/c",
        f"{DAEMONS}: default/b",
        f"{LOCAL}: default/e",
    ]


def test_the_last_warning_is_the_one_that_is_told():
    plan = drained(pod(owner=None, volume="emptyDir"), force=True, delete_emptydir_data=True)
    assert plan.warnings == ["deleting Pods that declare no controller: default/p"]


def test_with_every_flag_nothing_is_refused():
    for owner, volume, phase in itertools.product(
        [None, REPLICA_SET, DAEMON_SET], [None, "emptyDir"], ["Running", "Pending", "Succeeded"]
    ):
        assert plan_drain([pod(owner=owner, volume=volume, phase=phase)], EVERYTHING, PRESENT).refusals == []


def test_a_namespace_of_its_own_has_its_own_daemon_sets():
    assert daemon_set_of(pod(owner=DAEMON_SET)) == ("default", "agent")
    assert drained(pod(owner=DAEMON_SET), present={("other", "agent")}).refusals[0].startswith("cannot delete daemon")


@pytest.mark.parametrize("item", [pod(), pod(owner=None), pod(owner=DAEMON_SET, phase="Failed")])
def test_only_a_live_pod_of_a_daemon_set_asks_for_it(item):
    assert daemon_set_of(item) is None
