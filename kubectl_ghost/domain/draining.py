"""Which pods of a node a drain evicts, which it leaves alone, and which forbid it. As in kubectl's drain filters.

The rules and the words are those of kubernetes/kubernetes, staging/src/k8s.io/kubectl/pkg/drain/filters.go (1.36);
filler pods, which kubectl does not know, are part of the simulated hardware and stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kubectl_ghost.domain.guard import is_filler
from kubectl_ghost.domain.holders import is_finished
from kubectl_ghost.domain.keys import Json

_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_DAEMON_SET = "DaemonSet"

DaemonSetName = tuple[str, str]
"""Namespace and name of a DaemonSet."""


@dataclass(frozen=True, slots=True)
class DrainRules:
    """kubectl drain's flags about which pods may go."""

    force: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """What a drain does with the pods of one node: nothing at all where there are refusals."""

    going: list[Json] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """One for each kind of pod that goes, or is ignored, because a flag says so."""
    refusals: list[str] = field(default_factory=list)
    """One for each kind of pod that forbids the drain."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    going: bool
    warning: str = ""
    refusal: str = ""


def plan_drain(pods: Iterable[Json], rules: DrainRules, daemon_sets: Collection[DaemonSetName]) -> DrainPlan:
    """Sort the pods of one node.

    Args:
        daemon_sets: the DaemonSets that there are, of those that `daemon_set_of` names for these pods.
    """
    plan = DrainPlan()
    warnings: dict[str, list[str]] = defaultdict(list)
    refusals: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        verdict = _verdict(pod, rules, daemon_sets)
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if verdict.going:
            plan.going.append(pod)
        if verdict.warning:
            warnings[verdict.warning].append(name)
        if verdict.refusal:
            refusals[verdict.refusal].append(name)
    plan.warnings.extend(_lines(warnings))
    plan.refusals.extend(_lines(refusals))
    return plan


def daemon_set_of(pod: Json) -> DaemonSetName | None:
    """The DaemonSet that controls a pod and whose existence matters: not that of a pod that has ended."""
    controller = _controller(pod)
    if controller is None or controller.get("kind") != _DAEMON_SET or is_finished(pod):
        return None
    return pod["metadata"]["namespace"], str(controller.get("name"))


def _verdict(pod: Json, rules: DrainRules, daemon_sets: Collection[DaemonSetName]) -> _Verdict:
    """kubectl's filters in kubectl's order: the first that keeps the pod decides, else the last one's warning holds."""
    warning = ""
    daemon_set = daemon_set_of(pod)
    if daemon_set in daemon_sets:
        if not rules.ignore_daemonsets:
            return _Verdict(False, refusal="cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)")
        return _Verdict(False, warning="ignoring DaemonSet-managed Pods")
    if daemon_set is not None:
        warning = f'daemonsets.apps "{daemon_set[1]}" not found'
        if not rules.force:
            return _Verdict(False, refusal=f"cannot delete {warning}")
    if _MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}) or is_filler(pod):
        return _Verdict(False)
    if is_finished(pod):
        return _Verdict(True)
    if _has_local_storage(pod):
        warning = "deleting Pods with local storage"
        if not rules.delete_emptydir_data:
            return _Verdict(
                False, refusal="cannot delete Pods with local storage (use --delete-emptydir-data to override)"
            )
    if _controller(pod) is None:
        warning = "deleting Pods that declare no controller"
        if not rules.force:
            return _Verdict(False, refusal="cannot delete Pods that declare no controller (use --force to override)")
    return _Verdict(True, warning=warning)


def _controller(pod: Json) -> Json | None:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _has_local_storage(pod: Json) -> bool:
    return any(volume.get("emptyDir") is not None for volume in pod.get("spec", {}).get("volumes") or ())


def _lines(pods: Mapping[str, list[str]]) -> list[str]:
    return [f"{reason}: {', '.join(names)}" for reason, names in pods.items()]
