"""The record of what an adopted node had, its marks, and what the guard makes of adopting and giving back."""

import pytest

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.adoption import NOTHING, Before, before_of, before_text, is_adopted, read_before, template_of
from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.declaration_reading import decode
from kubectl_ghost.domain.errors import GhostError, GuardRefusal
from kubectl_ghost.domain.guard import permit
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.naming import parse_labels
from kubectl_ghost.domain.pools import PoolRequest, configure

FAKE = {keys.KWOK_NODE_KEY: keys.KWOK_NODE_VALUE}
MARK = {keys.MANAGED_BY_LABEL: keys.MANAGED_BY}
BEFORE = Before(
    labels={"a": "b", "nvidia.com/gpu.count": None, keys.MANAGED_BY_LABEL: None},
    annotations={keys.HARDWARE_ANNOTATION: None},
    capacity={"nvidia.com/gpu": None},
    allocatable={"nvidia.com/gpu": "1"},
    conditions=({"type": "Odd", "status": "True"},),
    unschedulable=True,
)
RECORD = before_text(BEFORE)
ADOPTION = {
    "metadata": {
        "labels": {**MARK, "nvidia.com/gpu.count": "8"},
        "annotations": {keys.HARDWARE_ANNOTATION: "{}", keys.ADOPTED_ANNOTATION: RECORD},
    }
}
RETURN = {
    "metadata": {
        "labels": {keys.MANAGED_BY_LABEL: None, "nvidia.com/gpu.count": None},
        "annotations": {keys.HARDWARE_ANNOTATION: None, keys.ADOPTED_ANNOTATION: None},
    }
}


def node(labels=None, annotations=None):
    return {"metadata": {"name": "n", "labels": labels or {}, "annotations": annotations or {}}}


THEIRS = node(annotations=FAKE)
ADOPTED = node(MARK, {**FAKE, keys.HARDWARE_ANNOTATION: "{}", keys.ADOPTED_ANNOTATION: RECORD})


def changed(patch, part, **values):
    """The same patch with other labels or annotations; a value of ... takes the key out."""
    merged = {**patch["metadata"][part], **values}
    kept = {key: value for key, value in merged.items() if value is not ...}
    return {"metadata": {**patch["metadata"], part: kept}}


def permitted(live, body, verb="patch"):
    try:
        permit("Node", verb, live=live, body=body, node=None)
    except GuardRefusal:
        return False
    return True


def test_a_record_comes_back_as_it_was_written():
    assert read_before(RECORD) == BEFORE
    assert before_text(read_before(RECORD)) == RECORD


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"labels":1}', RECORD.replace('"b"', "1"), "[" * 9999])
def test_a_damaged_record_is_as_none(text):
    assert read_before(text) == NOTHING
    assert before_of(node(annotations={keys.ADOPTED_ANNOTATION: text})) == NOTHING


def test_either_mark_says_that_a_node_was_adopted_but_not_beside_a_pools_label():
    label = {keys.TEMPLATE_LABEL: "gpu"}
    assert is_adopted(ADOPTED)
    assert is_adopted(node(label))
    assert template_of(node(label)) == "gpu"
    assert not is_adopted(node({**label, keys.POOL_LABEL: "gpu"}))
    assert not is_adopted(THEIRS)


def test_an_adopted_node_keeps_its_name_in_its_declaration():
    settings = configure("gpu", None, PoolRequest())
    hardware = NodeHardware(settings, 0, adopted="worker-7f")
    assert hardware.node_name == "worker-7f"
    assert decode(encode(hardware), "worker-7f") == hardware
    with pytest.raises(GhostError, match='is that of node "worker-7f"'):
        decode(encode(hardware), "gpu-0")
    assert "adopted" not in encode(NodeHardware(settings, 0))


def test_pools_cannot_be_given_the_label_of_adopted_nodes():
    with pytest.raises(GhostError, match="this tool's own"):
        parse_labels((f"{keys.TEMPLATE_LABEL}=gpu",))


def test_a_simulated_node_of_others_is_adopted_by_one_patch():
    assert permitted(THEIRS, ADOPTION)


@pytest.mark.parametrize(
    "live",
    [
        node(),
        node(annotations={keys.KWOK_NODE_KEY: "real"}),
        node({keys.TEMPLATE_LABEL: "gpu"}),
        node(annotations={**FAKE, keys.ADOPTED_ANNOTATION: before_text(Before({"x": "y"}, {}, {}, {}))}),
    ],
    ids=["real", "another value", "real with our label", "another record"],
)
def test_no_other_node_is_adopted(live):
    assert not permitted(live, ADOPTION)


@pytest.mark.parametrize(
    "patch",
    [
        {**ADOPTION, "spec": {"taints": None}},
        {"metadata": {**ADOPTION["metadata"], "finalizers": []}},
        changed(ADOPTION, "labels", **{keys.MANAGED_BY_LABEL: "someone"}),
        changed(ADOPTION, "labels", unrecorded="x"),
        changed(ADOPTION, "annotations", unrecorded="x"),
        changed(ADOPTION, "annotations", **{keys.HARDWARE_ANNOTATION: ...}),
        changed(ADOPTION, "annotations", **{keys.ADOPTED_ANNOTATION: ...}),
        changed(ADOPTION, "annotations", **{keys.KWOK_NODE_KEY: None}),
    ],
)
def test_a_patch_that_does_more_than_adopt_or_notes_less_is_refused(patch):
    assert not permitted(THEIRS, patch)


def test_an_adopted_node_is_written_to_but_never_deleted_or_replaced():
    assert permitted(ADOPTED, {"metadata": {"labels": {"nvidia.com/gpu.count": "4"}}})
    assert permitted(ADOPTED, {"status": {"capacity": {"nvidia.com/gpu": "4"}}})
    assert not permitted(ADOPTED, None, "delete")
    assert not permitted(node({**MARK, keys.TEMPLATE_LABEL: "gpu"}, FAKE), None, "delete")
    assert not permitted(ADOPTED, ADOPTED, "replace")


@pytest.mark.parametrize("record", [None, before_text(NOTHING)])
def test_its_record_is_not_changed(record):
    patch = {"annotations": {keys.ADOPTED_ANNOTATION: record}}
    assert not permitted(ADOPTED, {"metadata": patch})
    assert not permitted(ADOPTED, {"metadata": {**patch, "finalizers": []}})


def test_it_is_given_back_by_one_patch():
    assert permitted(ADOPTED, RETURN)
    assert permitted(ADOPTED, {**RETURN, "spec": {"unschedulable": None}})


@pytest.mark.parametrize(
    ("live", "patch"),
    [
        (ADOPTED, {**RETURN, "spec": {"taints": None}}),
        (ADOPTED, changed(RETURN, "annotations", **{keys.KWOK_NODE_KEY: None})),
        (ADOPTED, changed(RETURN, "annotations", **{keys.HARDWARE_ANNOTATION: ...})),
        (ADOPTED, changed(RETURN, "annotations", **{keys.ADOPTED_ANNOTATION: ...})),
        (ADOPTED, changed(RETURN, "labels", **{keys.MANAGED_BY_LABEL: "someone"})),
        (node(MARK, FAKE), RETURN),
        (node({}, {keys.ADOPTED_ANNOTATION: RECORD}), RETURN),
    ],
)
def test_nothing_else_takes_our_mark_off(live, patch):
    assert not permitted(live, patch)


def test_a_node_whose_marks_were_both_taken_off_is_still_its_owners():
    declared = '{"adopted":"worker-3","format":1}'
    assert is_adopted({"metadata": {"name": "worker-3", "annotations": {"kubectl-ghost.dev/hardware": declared}}})
    assert not is_adopted({"metadata": {"name": "node-3", "annotations": {"kubectl-ghost.dev/hardware": "{}"}}})
