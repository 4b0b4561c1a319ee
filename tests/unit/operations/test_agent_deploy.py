"""Deploying the metrics agent and taking it away: what is written, in which order, and what is left alone."""

import copy
from dataclasses import replace

import pytest

from kubectl_ghost.cluster.errors import Forbidden
from kubectl_ghost.cluster.resources import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    PODS,
    SERVICE_ACCOUNTS,
)
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import KWOK_NODE_KEY
from kubectl_ghost.manifests import agent
from kubectl_ghost.manifests.agent import AgentPod, Bundle
from kubectl_ghost.operations.agent_deploy import (
    delete_agent,
    deploy_agent,
    find_agent,
    is_as_asked,
    real_nodes,
    wait_until_deleted,
)
from tests.unit.domain.test_real_nodes import node
from tests.unit.operations.memory import Memory, Sent, Store

SPACE, NAME = "kubectl-ghost-metrics", "kubectl-ghost-agent"
WANTED = AgentPod(Bundle(b"code", "digest"), seconds=3600)
KINDS = ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Pod"]
IN_SPACE = (SERVICE_ACCOUNTS, CONFIG_MAPS, PODS)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    for name in ("agent_deploy", "creating"):
        monkeypatch.setattr(f"kubectl_ghost.operations.{name}._POLL_SECONDS", 0)


def deploy(store, wanted=WANTED, dry_run=DryRun.NONE):
    writer = Memory(store, dry_run=dry_run)
    changes = [(change.resource.kind, change.verb.value) for change in deploy_agent(writer, wanted, ["worker"])]
    return changes, [(sent.verb, sent.resource.kind) for sent in writer.writes]


def delete(store):
    return [(change.resource.kind, change.verb.value) for change in delete_agent(Memory(store))]


def running(store):
    store.edit(PODS, NAME, lambda pod: pod.update(status={"phase": "Running"}), SPACE)


def deployed():
    store = Store()
    deploy(store)
    running(store)
    return store


def test_everything_is_made_in_the_order_in_which_one_needs_the_other():
    store = Store()
    changes, writes = deploy(store)
    assert changes == [(kind, "created") for kind in KINDS]
    assert writes == [("create", kind) for kind in KINDS]


def test_a_second_run_writes_nothing():
    assert deploy(deployed()) == ([(kind, "unchanged") for kind in KINDS], [])


def test_what_is_missing_is_made():
    store = deployed()
    store.remove(CLUSTER_ROLES, NAME)
    changes, writes = deploy(store)
    assert [change for change in changes if change[1] != "unchanged"] == [("ClusterRole", "created")]
    assert writes == [("create", "ClusterRole")]


def test_other_options_replace_the_pod_and_nothing_that_stays_the_same():
    changes, writes = deploy(deployed(), replace(WANTED, arguments=("--jitter", "5")))
    assert writes == [("delete", "Pod"), ("create", "Pod")]
    assert changes == [("Pod", "deleted"), *((kind, "unchanged") for kind in KINDS[:-1]), ("Pod", "created")]


def test_other_code_replaces_the_pod_before_the_config_map():
    _, writes = deploy(deployed(), replace(WANTED, bundle=Bundle(b"new", "new")))
    assert writes == [("delete", "Pod"), ("delete", "ConfigMap"), ("create", "ConfigMap"), ("create", "Pod")]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_is_made_anew(phase):
    store = deployed()
    store.edit(PODS, NAME, lambda pod: pod.update(status={"phase": phase}), SPACE)
    assert find_agent(Memory(store)) is None
    assert deploy(store)[1] == [("delete", "Pod"), ("create", "Pod")]


def test_a_pod_that_is_going_is_waited_for_and_made_anew():
    store = deployed()
    store.edit(PODS, NAME, lambda pod: pod["metadata"].update(deletionTimestamp="now"), SPACE)
    writer = Memory(store)
    assert find_agent(writer) is None

    def gone_at_last(number, sent):
        if number == 3:
            store.remove(PODS, NAME, SPACE)

    writer.before = gone_at_last
    list(deploy_agent(writer, WANTED, ["worker"]))
    assert [sent.verb for sent in writer.writes] == ["create"] * 3
    assert "deletionTimestamp" not in store.objects["Pod", SPACE, NAME]["metadata"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_somebody_else_has_made_is_left_alone(kind):
    store = deployed()
    [stranger] = [key for key in store.objects if key[0] == kind]
    store.objects[stranger] = copy.deepcopy(store.objects[stranger])
    store.objects[stranger]["metadata"]["labels"] = {}
    with pytest.raises(GhostError, match=f'{kind} "{stranger[2]}" exists and is not managed by kubectl-ghost'):
        deploy(store, replace(WANTED, arguments=("--jitter", "5")))
    assert (kind, "deleted") not in delete(store)
    assert stranger in store.objects


def test_a_namespace_that_goes_meanwhile_is_made_again():
    store, writer = Store(), Memory(Store())
    writer.store = store
    refused = []

    def terminating(number: int, sent: Sent) -> None:
        if sent.resource is SERVICE_ACCOUNTS and sent.verb == "create" and not refused:
            refused.append(sent)
            store.remove(NAMESPACES, SPACE)
            causes = [{"reason": "NamespaceTerminating"}]
            raise Forbidden("being terminated", status=403, details={"causes": causes})

    writer.before = terminating
    list(deploy_agent(writer, WANTED, ["worker"]))
    assert refused
    assert {kind for kind, _, _ in store.objects} == set(KINDS)


def test_deleting_takes_everything_and_the_namespace_last():
    store = deployed()
    assert delete(store) == [(kind, "deleted") for kind in reversed(KINDS)]
    assert store.objects == {}
    assert delete(store) == []


@pytest.mark.parametrize("mode", [DryRun.CLIENT, DryRun.SERVER])
def test_a_dry_run_stores_nothing_and_says_all(mode):
    store = Store()
    changes, writes = deploy(store, dry_run=mode)
    assert changes == [(kind, "created") for kind in KINDS]
    assert store.objects == {}
    cluster_wide = [("create", kind) for kind in ("Namespace", "ClusterRole", "ClusterRoleBinding")]
    assert writes == ([] if mode is DryRun.CLIENT else cluster_wide)


def test_an_agent_is_as_asked_whatever_nodes_there_are():
    found = find_agent(Memory(deployed()))
    assert is_as_asked(found, WANTED)
    assert not is_as_asked(found, replace(WANTED, seconds=60))


def test_somebody_elses_pod_of_the_name_is_no_agent():
    store = deployed()
    store.edit(PODS, NAME, lambda pod: pod["metadata"].update(labels={}), SPACE)
    assert find_agent(Memory(store)) is None


@pytest.mark.parametrize("simulated", [3, 40])
@pytest.mark.parametrize("real", [1, 25])
def test_only_real_nodes_are_read_in_full(simulated, real):
    store = Store()
    for index in range(simulated):
        store.put(NODES, node(f"node-{index:02}", runtime="kwok-0.8.0", annotations={KWOK_NODE_KEY: "fake"}))
    for index in range(real):
        store.put(NODES, node(f"worker-{index:02}"))
    reader = Memory(store)
    assert real_nodes(reader) == [f"worker-{index:02}" for index in range(real)]
    assert len(reader.sent) == 1 + (real if real <= 20 else 1)


def test_waiting_for_the_namespace_to_go(monkeypatch):
    store = deployed()
    reader = Memory(store)
    store.edit(NAMESPACES, SPACE, lambda item: item["metadata"].update(deletionTimestamp="now"))
    with pytest.raises(GhostError, match=f'timed out: namespace "{SPACE}" is marked for deletion and still there'):
        wait_until_deleted(reader, timeout=0)
    reader.before_any = lambda number, sent: (
        number > 3 and SPACE in store.names(NAMESPACES) and store.remove(NAMESPACES, SPACE)
    )
    wait_until_deleted(reader, timeout=60)
    assert SPACE not in store.names(NAMESPACES)


def test_a_namespace_that_somebody_made_anew_is_not_waited_for():
    store = Store()
    store.put(NAMESPACES, agent.namespace())
    wait_until_deleted(Memory(store), timeout=60)
