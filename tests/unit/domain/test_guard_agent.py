"""What the guard lets through for the metrics agent: its own objects, made and deleted, with no more rights than it
needs. Never weaken this file."""

import copy

import pytest

from kubectl_ghost.domain.errors import GuardRefusal
from kubectl_ghost.domain.guard import permit
from kubectl_ghost.domain.keys import MANAGED_BY_LABEL
from kubectl_ghost.manifests import agent
from kubectl_ghost.manifests.agent import AgentPod, Bundle

WANTED = AgentPod(Bundle(b"code", "digest"))
OBJECTS = [
    agent.namespace(),
    agent.service_account(),
    agent.cluster_role(read_only=False),
    agent.cluster_role(read_only=True),
    agent.cluster_role_binding(),
    agent.config_map(WANTED),
    agent.pod(WANTED, ["worker"]),
]
KINDS = [item["kind"] for item in OBJECTS]
NAMESPACED = [item for item in OBJECTS if "namespace" in item["metadata"]]


def passes(kind, verb, live=None, body=None):
    try:
        permit(kind, verb, live=live, body=body, node=None)
    except GuardRefusal:
        return False
    return True


def changed(item, **parts):
    return {**copy.deepcopy(item), **parts}


def renamed(item, **metadata):
    return changed(item, metadata={**item["metadata"], **metadata})


def role(*rules, **parts):
    return changed(agent.cluster_role(read_only=True), rules=list(rules), **parts)


def rule(group, resources, verbs, **parts):
    return {"apiGroups": [group], "resources": resources, "verbs": verbs, **parts}


@pytest.mark.parametrize("item", OBJECTS, ids=KINDS)
def test_the_agents_objects_are_made_and_deleted(item):
    assert passes(item["kind"], "create", body=item)
    assert passes(item["kind"], "delete", live=item)


@pytest.mark.parametrize("item", OBJECTS, ids=KINDS)
def test_they_are_neither_patched_nor_replaced(item):
    assert not passes(item["kind"], "patch", live=item, body={"metadata": {"labels": {"a": "b"}}})
    assert not passes(item["kind"], "patch", live=item, body={})
    assert not passes(item["kind"], "replace", live=item, body=item)


@pytest.mark.parametrize("verb", ["create", "delete"])
@pytest.mark.parametrize("item", OBJECTS, ids=KINDS)
def test_none_of_another_name_is_touched(item, verb):
    other = renamed(item, name="other")
    assert not passes(item["kind"], verb, live=other, body=other)


@pytest.mark.parametrize("verb", ["create", "delete"])
@pytest.mark.parametrize("item", OBJECTS, ids=KINDS)
def test_none_without_our_label_is_touched(item, verb):
    for labels in ({}, {MANAGED_BY_LABEL: "helm"}):
        other = renamed(item, labels=labels)
        assert not passes(item["kind"], verb, live=other, body=other)


@pytest.mark.parametrize("verb", ["create", "delete"])
@pytest.mark.parametrize("item", NAMESPACED, ids=lambda item: item["kind"])
def test_none_in_another_namespace_is_touched(item, verb):
    other = renamed(item, namespace="default")
    assert not passes(item["kind"], verb, live=other, body=other)


@pytest.mark.parametrize("item", OBJECTS, ids=KINDS)
def test_what_is_deleted_is_judged_by_what_is_there(item):
    theirs = renamed(item, labels={})
    assert not passes(item["kind"], "delete", live=theirs, body=item)
    assert not passes(item["kind"], "create", live=item, body=theirs)
    assert not passes(item["kind"], "delete")
    assert not passes(item["kind"], "create")


@pytest.mark.parametrize(
    "granting",
    [
        role(rule("", ["secrets"], ["get"])),
        role(rule("", ["nodes", "secrets"], ["get"])),
        role(rule("", ["nodes"], ["delete"])),
        role(rule("", ["nodes"], ["patch"])),
        role(rule("", ["nodes", "pods"], ["patch"])),
        role(rule("", ["pods"], ["patch", "create"])),
        role(rule("", ["pods/exec"], ["get"])),
        role(rule("*", ["pods"], ["get"])),
        role(rule("resource.k8s.io", ["resourceclaims"], ["patch"])),
        role(rule("resource.k8s.io", ["pods"], ["patch"])),
        role(rule("apps", ["nodes"], ["get"])),
        role({"apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["get"]}),
        role({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}),
        role(rule("", ["pods"], ["get"], nonResourceURLs=["*"])),
        role(rule("", ["pods"], ["*"])),
        role(rule("", ["*"], ["get"])),
        role(aggregationRule={"clusterRoleSelectors": [{}]}),
    ],
)
def test_a_role_that_grants_more_is_not_made_but_deleted(granting):
    assert not passes("ClusterRole", "create", body=granting)
    assert passes("ClusterRole", "delete", live=granting)


@pytest.mark.parametrize(
    "parts",
    [
        {"roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}},
        {"roleRef": {"kind": "Role", "name": "kubectl-ghost-agent"}},
        {"subjects": []},
        {"subjects": [{"kind": "Group", "name": "system:authenticated"}]},
        {"subjects": [{"kind": "ServiceAccount", "name": "kubectl-ghost-agent", "namespace": "default"}]},
        {"subjects": agent.cluster_role_binding()["subjects"] * 2},
    ],
)
def test_a_binding_of_another_role_or_for_others_is_not_made_but_deleted(parts):
    binding = changed(agent.cluster_role_binding(), **parts)
    assert not passes("ClusterRoleBinding", "create", body=binding)
    assert passes("ClusterRoleBinding", "delete", live=binding)


@pytest.mark.parametrize("kind", ["Secret", "Deployment", "Role", "RoleBinding", "Service"])
def test_no_other_kind_is_the_agents(kind):
    item = changed(agent.config_map(WANTED), kind=kind)
    assert not passes(kind, "create", body=item)
    assert not passes(kind, "delete", live=item)
