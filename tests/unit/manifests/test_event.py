"""Events of faults, and the status of a pod that one has ended."""

import pytest

from kubectl_ghost.domain.guard import permit
from kubectl_ghost.domain.keys import KWOK_NODE_KEY, KWOK_NODE_VALUE, MANAGED_BY, MANAGED_BY_LABEL
from kubectl_ghost.domain.reactions import Notice
from kubectl_ghost.manifests.event import node_event, repetition
from kubectl_ghost.manifests.failed_pod import failed_status

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"
NOTICE = Notice("Warning", "XID79", "gpu-2: XID 79", "kubectl-ghost")
NODE = {
    "metadata": {
        "name": "node-0",
        "labels": {MANAGED_BY_LABEL: MANAGED_BY},
        "annotations": {KWOK_NODE_KEY: KWOK_NODE_VALUE},
    }
}
POD = {
    "metadata": {"name": "job", "namespace": "default"},
    "spec": {"nodeName": "node-0", "containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]},
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": EARLY},
            {"type": "Ready", "status": "True", "lastTransitionTime": EARLY},
        ],
        "containerStatuses": [
            {"name": "a", "image": "x", "imageID": "", "ready": True, "restartCount": 2,
             "state": {"running": {"startedAt": EARLY}}},
        ],
    },
}  # fmt: skip


def test_an_event_is_what_describe_node_looks_for():
    event = node_event("node-0", "2 XID 79", NOTICE, EARLY)
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "node-0", "uid": "node-0"}
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "XID79", "gpu-2: XID 79")
    assert event["source"]["component"] == "kubectl-ghost"
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (1, EARLY, EARLY)
    permit("Event", "create", live=None, body=event, node=NODE)


@pytest.mark.parametrize(
    "other",
    [
        node_event("node-1", "2 XID 79", NOTICE, EARLY),
        node_event("node-0", "3 XID 79", NOTICE, EARLY),
        node_event("node-0", "2 XID 79", Notice("Warning", "XID79", "", "nvsentinel"), EARLY),
        node_event("node-0", "2 XID 79", Notice("Warning", "XID48", "", "kubectl-ghost"), EARLY),
    ],
)
def test_events_of_different_happenings_have_different_names(other):
    assert node_event("node-0", "2 XID 79", NOTICE, EARLY)["metadata"]["name"] != other["metadata"]["name"]


def test_the_same_happening_again_has_the_same_name_and_is_counted_once_a_time():
    first, second = (node_event("node-0", "2 XID 79", NOTICE, moment) for moment in (EARLY, LATE))
    assert first["metadata"] == second["metadata"]
    assert repetition(first, first) == {}
    patch = repetition(first, second)
    assert patch == {"count": 2, "lastTimestamp": LATE, "message": "gpu-2: XID 79"}
    assert repetition({**first, **patch}, second) == {}
    permit("Event", "patch", live=first, body=patch, node=NODE)


def test_a_failed_pod_says_why():
    patch = failed_status(POD, 139, "XID 13 on node-0/gpu-2", LATE)
    permit("Pod", "patch", live=POD, body=patch, node=NODE)
    status = patch["status"]
    assert (status["phase"], status["message"]) == ("Failed", "XID 13 on node-0/gpu-2")
    states = {entry["name"]: entry["state"]["terminated"] for entry in status["containerStatuses"]}
    assert states["a"] == {
        "exitCode": 139,
        "reason": "Error",
        "message": "XID 13 on node-0/gpu-2",
        "startedAt": EARLY,
        "finishedAt": LATE,
    }
    assert states["b"]["exitCode"] == 139
    assert [entry["restartCount"] for entry in status["containerStatuses"]] == [2, 0]
    assert not any(entry["ready"] for entry in status["containerStatuses"])


def test_its_other_conditions_stay():
    found = failed_status(POD, 139, "m", LATE)["status"]["conditions"]
    assert sorted(entry["type"] for entry in found) == ["ContainersReady", "PodScheduled", "Ready"]
    conditions = {entry["type"]: entry for entry in found}
    assert conditions["PodScheduled"] == POD["status"]["conditions"][0]
    for kind in ("Ready", "ContainersReady"):
        assert (conditions[kind]["status"], conditions[kind]["lastTransitionTime"]) == ("False", LATE)
