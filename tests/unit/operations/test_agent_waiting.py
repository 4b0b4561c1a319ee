"""Waiting for the agent's pod, and what is said when it does not come. Time is faked."""

from types import SimpleNamespace

import pytest

from kubectl_ghost.cluster.errors import ApiError
from kubectl_ghost.cluster.resources import PODS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.operations import agent_waiting
from kubectl_ghost.operations.agent_waiting import wait_until_ready, why_over
from tests.unit.operations.memory import Memory, Store
from tests.unit.operations.test_agent_deploy import NAME, SPACE, deploy

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
STARTING = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}
UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient cpu"}
    ],
}


def waiting(reason, message=None, **more):
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return {"phase": "Pending", "containerStatuses": [{"image": "example.com/python", "state": state, **more}]}


class Pod:
    """The agent's pod in a cluster in which something happens while time goes by."""

    def __init__(self, monkeypatch):
        self.now, self.slept, self.steps, self.log = 1000.0, 0.0, {}, b""
        self.store = Store()
        deploy(self.store)
        self.reader = Memory(self.store)
        self.reader._transport.request = self.answer
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)
        monkeypatch.setattr(agent_waiting, "time", clock)

    def answer(self, method, path, **settings):
        assert (method, path) == ("GET", f"/api/v1/namespaces/{SPACE}/pods/{NAME}/log")
        if not self.log:
            raise ApiError("no log", status=400)
        return self.log

    def sleep(self, seconds):
        self.now += seconds
        self.slept += seconds
        for after in [moment for moment in self.steps if moment <= self.slept]:
            self.becomes(self.steps.pop(after))

    def becomes(self, status):
        self.store.edit(PODS, NAME, lambda pod: pod.update(status=status), SPACE)

    def wait(self, timeout=300.0):
        return wait_until_ready(self.reader, timeout=timeout, progress=lambda done, total: None)

    def uid(self):
        return self.store.objects["Pod", SPACE, NAME]["metadata"]["uid"]


@pytest.fixture
def pod(monkeypatch):
    return Pod(monkeypatch)


def test_it_returns_the_pod_once_it_is_ready(pod):
    pod.becomes(STARTING)
    pod.steps = {100: {"phase": "Running"}, 200: READY}
    assert pod.wait()["status"] == READY
    assert 199.9 < pod.slept < 201


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (UNSCHEDULABLE, "the scheduler finds no place for it: Insufficient cpu"),
        (
            waiting("ImagePullBackOff", "Back-off"),
            "its image example.com/python cannot be had: Back-off",
        ),
        (waiting("ErrImagePull"), "its image example.com/python cannot be had: ErrImagePull"),
        (waiting("CreateContainerConfigError", "runs as root"), "CreateContainerConfigError: runs as root"),
        (waiting("CrashLoopBackOff", "back-off", restartCount=2), "its container ends again and again"),
    ],
)
def test_trouble_that_stays_is_told_long_before_the_time_is_up(pod, status, words):
    pod.becomes(status)
    with pytest.raises(GhostError) as told:
        pod.wait()
    assert words in told.value.message
    assert 14.9 < pod.slept < 16


def test_trouble_that_passes_is_borne(pod):
    pod.becomes(UNSCHEDULABLE)
    pod.steps = {14: STARTING, 20: waiting("ErrImagePull"), 34: STARTING, 40: READY}
    pod.wait()


def test_the_way_out_fits_the_trouble(pod):
    pod.becomes(waiting("ErrImagePull"))
    with pytest.raises(GhostError) as told:
        pod.wait()
    assert "--image" in told.value.hint
    pod.becomes(UNSCHEDULABLE)
    with pytest.raises(GhostError) as told:
        pod.wait()
    assert "describe pod" in told.value.hint
    assert "metrics serve" in told.value.hint


def test_what_the_container_said_is_shown(pod):
    pod.becomes(waiting("CrashLoopBackOff", restartCount=1))
    pod.log = b"Traceback\nImportError\n"
    with pytest.raises(GhostError, match=r"again and again; it said:\nTraceback\nImportError$"):
        pod.wait()


def test_time_that_is_up(pod):
    pod.becomes(STARTING)
    with pytest.raises(GhostError, match="it is not Ready in time"):
        pod.wait(5)
    assert 4.9 < pod.slept < 6


def test_a_pod_that_has_ended_is_told_at_once(pod):
    pod.becomes({"phase": "Failed", "reason": "DeadlineExceeded"})
    with pytest.raises(GhostError, match=r"its time is over \(--ttl 3600s\)"):
        pod.wait()
    assert pod.slept == 0


def test_a_pod_that_was_deleted(pod):
    pod.store.remove(PODS, NAME, SPACE)
    with pytest.raises(GhostError, match="was deleted while waiting"):
        pod.wait()


def test_a_pod_that_is_going_is_not_ready(pod):
    pod.becomes(READY)
    pod.store.edit(PODS, NAME, lambda item: item["metadata"].update(deletionTimestamp="now"), SPACE)
    with pytest.raises(GhostError, match="not Ready in time"):
        pod.wait(1)


def test_why_an_agent_serves_no_longer(pod):
    uid = pod.uid()
    pod.becomes(READY)
    assert why_over(pod.reader, uid) == ""
    assert why_over(pod.reader, "another") == "it was deleted"
    pod.becomes({"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"})
    assert why_over(pod.reader, uid) == "it has ended: The node was low on memory"
    pod.store.remove(PODS, NAME, SPACE)
    assert why_over(pod.reader, uid) == "it was deleted"


def test_a_server_that_does_not_answer_says_nothing_about_the_agent(pod):
    def fail(number, sent):
        raise ApiError("connection refused")

    pod.reader.before_any = fail
    assert why_over(pod.reader, "uid") == ""
