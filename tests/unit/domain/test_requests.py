"""What is asked of a node by label, annotation or condition is seen once, and a reboot only of an empty node."""

from dataclasses import replace

from kubectl_ghost.domain.hardware import MigConfig, NodeHardware
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.domain.requests import RebootSigns, is_drained, mig_request, reboot_request

HARDWARE = NodeHardware(configure("node", None, PoolRequest()), 0)


def node(*, annotations=None, labels=None, conditions=(), **spec):
    return {
        "metadata": {"name": "node-0", "annotations": annotations or {}, "labels": labels or {}},
        "spec": spec,
        "status": {"conditions": list(conditions)},
    }


def owned_by(kind, phase="Running"):
    return {"metadata": {"ownerReferences": [{"kind": kind}]}, "status": {"phase": phase}}


def test_a_reboot_is_asked_for_by_annotation():
    signs = RebootSigns()
    assert reboot_request(node(), signs) == ""
    assert reboot_request(node(annotations={"kubectl-ghost.dev/reboot": "1"}), signs) == "kubectl-ghost.dev/reboot=1"
    assert reboot_request(node(annotations={"weave.works/kured-reboot-in-progress": "t"}), signs)


def test_or_by_a_condition_that_is_true():
    signs = RebootSigns(conditions=("Reboot",))
    true = {"type": "Reboot", "status": "True", "lastTransitionTime": "t1"}
    assert reboot_request(node(conditions=[true]), signs) == "Reboot=t1"
    assert reboot_request(node(conditions=[{**true, "status": "False"}]), signs) == ""
    assert reboot_request(node(conditions=[true]), RebootSigns()) == ""


def test_a_node_is_drained_when_it_is_cordoned_and_empty():
    assert not is_drained(node(), [])
    assert is_drained(node(unschedulable=True), [])
    assert is_drained(node(unschedulable=True), [owned_by("DaemonSet"), owned_by("Job", "Succeeded")])
    assert not is_drained(node(unschedulable=True), [owned_by("ReplicaSet")])


def test_a_mig_configuration_is_asked_for_until_it_is_answered():
    asked = node(labels={"nvidia.com/mig.config": "all-balanced"})
    assert mig_request(node(), HARDWARE) is None
    assert mig_request(asked, HARDWARE) == "all-balanced"
    for state in ("success", "failed"):
        assert mig_request(asked, replace(HARDWARE, mig_config=MigConfig("all-balanced", state))) is None


def test_what_keeps_gpus_busy_belongs_to_the_node():
    filler = owned_by("Nothing")
    filler["metadata"] |= {
        "namespace": "kubectl-ghost-occupancy",
        "labels": {"app.kubernetes.io/managed-by": "kubectl-ghost"},
    }
    assert is_drained(node(unschedulable=True), [filler])
    filler["metadata"]["labels"] = {}
    assert not is_drained(node(unschedulable=True), [filler])
