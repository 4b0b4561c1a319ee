"""Which objects are the metrics agent's: by fixed names, and by granting the agent no more than it needs."""

from __future__ import annotations

from typing import Final

from kubectl_ghost.domain.keys import AGENT_NAME, AGENT_NAMESPACE, MANAGED_BY, MANAGED_BY_LABEL, Json

AGENT_READS: Final = {"": ("nodes", "pods"), "resource.k8s.io": ("resourceclaims",)}
"""API group -> what the agent lists and watches there."""
SELECTORS: Final = {
    "nodes": {"labelSelector": f"{MANAGED_BY_LABEL}={MANAGED_BY}"},
    "pods": {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"},
    "resourceclaims": {},
}
"""What it asks for of each of them, as the API server's query. Pods that are nowhere, or have ended, hold nothing."""
READ_VERBS: Final = ("get", "list", "watch")
_IN_NAMESPACE = ("ServiceAccount", "ConfigMap", "Pod")
_FOR_CLUSTER = ("ClusterRole", "ClusterRoleBinding")
_RULE_FIELDS = {"apiGroups", "resources", "verbs"}


def is_agents(kind: str, item: Json) -> bool:
    """Whether an object has the name and the place of one of the agent's."""
    metadata = item.get("metadata", {})
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if kind == "Namespace":
        return bool(name == AGENT_NAMESPACE)
    if kind in _FOR_CLUSTER:
        return bool(name == AGENT_NAME)
    return kind in _IN_NAMESPACE and (namespace, name) == (AGENT_NAMESPACE, AGENT_NAME)


def grants_too_much(kind: str, item: Json) -> bool:
    """Whether a role or a binding would let anybody do what the agent need not do, or let others do it."""
    if kind == "ClusterRole":
        return "aggregationRule" in item or not all(map(_is_modest, item.get("rules") or ()))
    return kind == "ClusterRoleBinding" and not _binds_agent(item)


def _is_modest(rule: Json) -> bool:
    """Whether a rule is about what the agent reads, or patching pods, where it records which GPUs they have."""
    groups, resources, verbs = (rule.get(field) or [] for field in ("apiGroups", "resources", "verbs"))
    if len(groups) != 1 or set(rule) - _RULE_FIELDS:
        return False
    if verbs == ["patch"]:
        return bool(groups == [""] and resources == ["pods"])
    return set(resources) <= set(AGENT_READS.get(groups[0], ())) and set(verbs) <= set(READ_VERBS)


def _binds_agent(binding: Json) -> bool:
    role, subjects = binding.get("roleRef") or {}, binding.get("subjects") or []
    bound = [(subject.get("kind"), subject.get("namespace"), subject.get("name")) for subject in subjects]
    is_ours = (role.get("kind"), role.get("name")) == ("ClusterRole", AGENT_NAME)
    return is_ours and bound == [("ServiceAccount", AGENT_NAMESPACE, AGENT_NAME)]
