"""The packaged stages as objects; what they do is tested on a real kwok."""

from __future__ import annotations

import yaml

from kubectl_ghost.domain.keys import DURATION_ANNOTATION, NODE_DOWN_ANNOTATION, NODE_UNREACHABLE_ANNOTATION
from kubectl_ghost.engine.stages import (
    contains,
    kinds_not_played,
    stage_documents,
    stages_text,
)

STAGES = {document["metadata"]["name"]: document for document in map(yaml.safe_load, stage_documents())}


def test_the_text_is_one_multi_document_yaml_of_all_stages() -> None:
    documents = list(yaml.safe_load_all(stages_text()))
    assert [document["metadata"]["name"] for document in documents] == list(STAGES)
    assert {document["apiVersion"] for document in documents} == {"kwok.x-k8s.io/v1alpha1"}
    assert set(STAGES) == {
        "node-initialize",
        "node-heartbeat-with-lease",
        "node-down",
        "node-unreachable",
        "pod-ready",
        "pod-complete",
        "pod-delete",
    }


def test_nodes_come_before_pods() -> None:
    kinds = [stage["spec"]["resourceRef"]["kind"] for stage in STAGES.values()]
    assert kinds == sorted(kinds)


def test_the_annotations_are_those_that_the_code_names() -> None:
    for name in ("node-down", "node-initialize", "node-heartbeat-with-lease"):
        assert NODE_DOWN_ANNOTATION in yaml.safe_dump(STAGES[name]["spec"]["selector"], width=1000)
    for name in ("node-unreachable", "node-initialize", "node-heartbeat-with-lease"):
        assert NODE_UNREACHABLE_ANNOTATION in yaml.safe_dump(STAGES[name]["spec"]["selector"], width=1000)
    assert DURATION_ANNOTATION in STAGES["pod-complete"]["spec"]["delay"]["durationFrom"]["jq"]["expression"]


def test_no_jitter_undercuts_its_delay() -> None:
    """kwok takes a jitter that is not above the delay for the delay."""
    for stage in STAGES.values():
        delay = stage["spec"].get("delay", {})
        assert delay.get("jitterDurationMilliseconds", 1 << 40) > delay.get("durationMilliseconds", 0)


def test_what_is_served_may_hold_more_but_not_less() -> None:
    assert contains({"a": [{"b": 1, "weight": 0}], "c": 2}, {"a": [{"b": 1}]})
    assert not contains({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}]})
    assert not contains(None, {"a": 1})


def test_kwoks_log_tells_which_kinds_it_plays() -> None:
    line = '{{"msg":"Start stage controller","ref":{{"APIGroup":"v1","Kind":"{}"}}}}'
    assert kinds_not_played("") == {"Node", "Pod"}
    assert kinds_not_played(line.format("Node")) == {"Pod"}
    assert kinds_not_played(line.format("Pod") + "\n" + line.format("Node")) == set()
