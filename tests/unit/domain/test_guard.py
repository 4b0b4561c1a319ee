"""The safety invariant: nothing is written to a node that is not simulated and ours. Never weaken this file."""

import copy

import pytest

from kubectl_ghost.domain.errors import GuardRefusal
from kubectl_ghost.domain.guard import permit
from kubectl_ghost.domain.keys import GPUS_ANNOTATION, KWOK_NODE_KEY, MANAGED_BY_LABEL

OURS = {
    "metadata": {
        "name": "node-0",
        "annotations": {KWOK_NODE_KEY: "fake"},
        "labels": {MANAGED_BY_LABEL: "kubectl-ghost"},
    }
}
REAL = {"metadata": {"name": "node-0", "labels": {MANAGED_BY_LABEL: "kubectl-ghost"}}}
OTHER_TOOL = {"metadata": {"name": "node-0", "annotations": {KWOK_NODE_KEY: "fake"}}}
WRONG_VALUE = {**OURS, "metadata": {**OURS["metadata"], "annotations": {KWOK_NODE_KEY: "real"}}}
BARE = {"metadata": {"name": "node-0"}}
FOREIGN = [REAL, OTHER_TOOL, WRONG_VALUE, BARE]

SLICE = {
    "metadata": {"name": "s", "labels": {MANAGED_BY_LABEL: "kubectl-ghost"}},
    "spec": {"driver": "gpu.nvidia.com", "nodeName": "node-0"},
}
POD = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"nodeName": "node-0"}}
RECORD = {"metadata": {"annotations": {GPUS_ANNOTATION: "gpu-0"}}}
LABEL = {"metadata": {"labels": {"a": "b"}}}


def refused(kind, verb, live=None, body=None, node=None):
    with pytest.raises(GuardRefusal):
        permit(kind, verb, live=live, body=body, node=node)
    return True


@pytest.mark.parametrize("node", FOREIGN)
def test_no_verb_reaches_a_node_that_is_not_ours(node):
    assert refused("Node", "create", body=node)
    assert refused("Node", "patch", live=node, body=LABEL)
    assert refused("Node", "replace", live=node, body=OURS)
    assert refused("Node", "replace", live=OURS, body=node)
    assert refused("Node", "delete", live=node)


@pytest.mark.parametrize("node", FOREIGN)
def test_no_verb_reaches_what_is_on_such_a_node(node):
    assert refused("ResourceSlice", "create", body=SLICE, node=node)
    assert refused("ResourceSlice", "replace", live=SLICE, body=SLICE, node=node)
    assert refused("Pod", "delete", live=POD, node=node)
    assert refused("Pod", "patch", live=POD, body=RECORD, node=node)


@pytest.mark.parametrize(
    ("kind", "verb", "arguments"),
    [
        ("Node", "create", {"body": OURS}),
        ("Node", "patch", {"live": OURS, "body": LABEL}),
        ("Node", "delete", {"live": OURS}),
        ("ResourceSlice", "create", {"body": SLICE, "node": OURS}),
        ("ResourceSlice", "replace", {"live": SLICE, "body": SLICE, "node": OURS}),
        ("ResourceSlice", "delete", {"live": SLICE}),
        ("Pod", "delete", {"live": POD, "node": OURS}),
        ("Pod", "patch", {"live": POD, "body": RECORD, "node": OURS}),
    ],
)
def test_what_is_ours_passes(kind, verb, arguments):
    assert permit(kind, verb, **{"live": None, "body": None, "node": None, **arguments}) is None


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"labels": {MANAGED_BY_LABEL: None}}},
        {"metadata": {"labels": {MANAGED_BY_LABEL: "someone"}}},
        {"metadata": {"annotations": {KWOK_NODE_KEY: None}}},
        {"metadata": {"annotations": {KWOK_NODE_KEY: "real"}}},
    ],
)
def test_a_patch_may_not_take_away_the_marks(patch):
    assert refused("Node", "patch", live=OURS, body=patch)


def test_a_pod_gets_no_other_patch_than_its_record():
    assert refused("Pod", "patch", live=POD, body=LABEL, node=OURS)
    both = copy.deepcopy(RECORD)
    both["metadata"]["labels"] = {"a": "b"}
    assert refused("Pod", "patch", live=POD, body=both, node=OURS)
    assert refused("Pod", "patch", live=POD, body={**RECORD, "spec": {}}, node=OURS)


def test_nothing_is_written_to_a_pod_beside_its_record():
    beside = {"metadata": {"annotations": {GPUS_ANNOTATION: "gpu-0", "theirs": "1"}}}
    assert refused("Pod", "patch", live=POD, body=beside, node=OURS)
    assert refused("Pod", "patch", live=POD, body={"metadata": {"annotations": {"theirs": "1"}}}, node=OURS)
    assert refused("Pod", "patch", live=POD, body={"metadata": {"annotations": {}}}, node=OURS)
    assert refused("Pod", "patch", live=POD, body={}, node=OURS)


@pytest.mark.parametrize("verb", ["create", "replace"])
def test_a_pod_is_neither_made_nor_replaced(verb):
    assert refused("Pod", verb, live=POD, body=RECORD, node=OURS)


@pytest.mark.parametrize(
    "patch", [{"metadata": {"labels": None}}, {"metadata": {"annotations": None}}, {"metadata": None}]
)
def test_a_patch_may_not_take_away_all_labels_or_annotations(patch):
    """In a merge patch None removes the whole mapping, and with it the marks."""
    assert refused("Node", "patch", live=OURS, body=patch)
    assert refused("ResourceSlice", "patch", live=SLICE, body=patch, node=OURS)


@pytest.mark.parametrize("patch", [{"metadata": {"labels": None}}, {"metadata": {"annotations": None}}])
def test_nor_from_a_device_class(patch):
    ours = {"metadata": {"name": "gpu.nvidia.com", "labels": {MANAGED_BY_LABEL: "kubectl-ghost"}}}
    assert refused("DeviceClass", "patch", live=ours, body=patch)


def test_a_slice_is_not_moved_from_or_to_another_node():
    elsewhere = {**SLICE, "spec": {**SLICE["spec"], "nodeName": "node-1"}}
    assert refused("ResourceSlice", "replace", live=elsewhere, body=SLICE, node=OURS)
    assert refused("ResourceSlice", "replace", live=SLICE, body=elsewhere, node=OURS)


def test_a_slice_that_loses_our_label_is_not_written():
    unmarked = {**SLICE, "metadata": {"name": "s"}}
    assert refused("ResourceSlice", "replace", live=SLICE, body=unmarked, node=OURS)
    assert refused("ResourceSlice", "create", body=unmarked, node=OURS)


def test_a_verb_without_an_object_is_refused():
    assert refused("Node", "delete")
    assert refused("Node", "patch", body=LABEL)
    assert refused("ResourceSlice", "delete", node=OURS)
    assert refused("DeviceClass", "delete")
    assert refused("Pod", "delete", node=OURS)


def test_a_refusal_names_the_object_and_the_verb():
    with pytest.raises(GuardRefusal, match='refused to delete Node "node-0"'):
        permit("Node", "delete", live=REAL, body=None, node=None)


def test_evidence_must_be_the_pods_or_slices_own_node():
    elsewhere = {**OURS, "metadata": {**OURS["metadata"], "name": "node-1"}}
    assert refused("Pod", "delete", live=POD, node=elsewhere)
    assert refused("Pod", "delete", live=POD)
    assert refused("ResourceSlice", "create", body=SLICE, node=elsewhere)
    assert refused("ResourceSlice", "create", body=SLICE)


def test_slices_of_another_driver_or_manager_are_not_ours():
    other_driver = {**SLICE, "spec": {**SLICE["spec"], "driver": "gpu.example.com"}}
    assert refused("ResourceSlice", "create", body=other_driver, node=OURS)
    unmarked = {**SLICE, "metadata": {"name": "s"}}
    assert refused("ResourceSlice", "delete", live=unmarked)
    assert refused("ResourceSlice", "replace", live=unmarked, body=SLICE, node=OURS)


def test_device_classes_of_others_are_left_alone():
    ours = {"metadata": {"name": "gpu.nvidia.com", "labels": {MANAGED_BY_LABEL: "kubectl-ghost"}}}
    theirs = {"metadata": {"name": "gpu.nvidia.com"}}
    other_name = {"metadata": {"name": "x.nvidia.com", "labels": {MANAGED_BY_LABEL: "kubectl-ghost"}}}
    assert permit("DeviceClass", "create", live=None, body=ours, node=None) is None
    assert refused("DeviceClass", "patch", live=theirs, body={"spec": {}})
    assert refused("DeviceClass", "delete", live=theirs)
    assert refused("DeviceClass", "create", body=other_name)


@pytest.mark.parametrize("kind", ["ResourceClaim", "Secret", "Deployment", "Namespace", "Binding"])
@pytest.mark.parametrize("verb", ["create", "patch", "replace", "delete"])
def test_every_other_kind_is_refused(kind, verb):
    assert refused(kind, verb, live=OURS, body=OURS, node=OURS)


@pytest.mark.parametrize("patch", [{"metadata": None}, {"metadata": {"annotations": None}}, {}])
def test_an_empty_patch_is_refused_where_it_records_nothing(patch):
    assert refused("Pod", "patch", live=POD, body=patch, node=OURS)
