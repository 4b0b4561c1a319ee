"""Running kubectl port-forward again and again: a kubectl of the tests' own, and faked pauses."""

import os
import signal
import sys
import time

import pytest

from kubectl_ghost.commands import port_forwarding
from kubectl_ghost.commands.port_forwarding import forward
from kubectl_ghost.domain.errors import GhostError

KUBECTL = """
import os, pathlib, sys, time
runs = pathlib.Path(sys.argv[1])
number = len(list(runs.iterdir()))
(runs / f"{number}-{os.getpid()}").write_text(sys.argv[2])
plan = sys.argv[3].split(",")[number]
if plan == "refuse":
    sys.exit(print("error: unable to listen on any of the requested ports", file=sys.stderr) or 1)
port = sys.argv[2] if sys.argv[2] != "0" else "31234"
print(f"Forwarding from 127.0.0.1:{port} -> 9400", flush=True)
print(f"Handling connection for {port}", flush=True)
if plan == "break":
    sys.exit(print("error: lost connection to pod", file=sys.stderr) or 1)
time.sleep(60)
"""


class Kubectl:
    """Runs that go by a plan, a word for each: refuse, break, stay."""

    def __init__(self, folder, plan):
        self.folder, self.plan = folder, ",".join(plan)
        self.ports, self.warnings = [], []

    def command(self, port):
        return [sys.executable, "-c", KUBECTL, str(self.folder), str(port), self.plan]

    def runs(self):
        """(number, local port it was given, pid) of each run so far."""
        found = []
        for path in self.folder.iterdir():
            number, pid = path.name.split("-")
            found.append((int(number), path.read_text(), int(pid)))
        return sorted(found)

    def forward(self, port, why_over):
        forward(self.command, port, why_over=why_over, listening=self.ports.append, warn=self.warnings.append)


@pytest.fixture
def kubectl(tmp_path, monkeypatch):
    monkeypatch.setattr(port_forwarding, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(port_forwarding, "_PAUSE_SECONDS", 0)
    return lambda *plan: Kubectl(tmp_path, plan)


def over_after(kubectl, number):
    """The other end goes once kubectl has been run so often and listens."""

    def why():
        return "it was deleted" if len(kubectl.runs()) >= number and kubectl.ports else ""

    return why


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_it_ends_with_what_it_forwards_to_and_leaves_no_kubectl(kubectl):
    run = kubectl("stay")
    with pytest.raises(GhostError, match="the agent's pod serves no longer: it was deleted"):
        run.forward(9400, over_after(run, 1))
    assert (run.ports, run.warnings) == ([9400], [])
    [(_, _, pid)] = run.runs()
    assert is_gone(pid)


def test_what_breaks_is_begun_again_and_said_once_to_listen(kubectl):
    run = kubectl("break", "break", "stay")
    with pytest.raises(GhostError, match="it was deleted"):
        run.forward(9400, over_after(run, 3))
    assert run.ports == [9400]
    said = "kubectl port-forward has ended (error: lost connection to pod), it is started again"
    assert run.warnings == [said, said]


def test_any_free_port_is_kept(kubectl):
    run = kubectl("break", "stay")
    with pytest.raises(GhostError, match="it was deleted"):
        run.forward(0, over_after(run, 2))
    assert [port for _, port, _ in run.runs()] == ["0", "31234"]
    assert run.ports == [31234]


def test_a_kubectl_that_cannot_begin_is_told_at_once(kubectl):
    run = kubectl("refuse")
    with pytest.raises(GhostError, match="kubectl port-forward: error: unable to listen on any of the requested ports"):
        run.forward(9400, lambda: "")
    assert run.ports == []


def test_one_that_worked_is_given_time_to_come_back(kubectl):
    run = kubectl("break", "refuse", "refuse", "stay")
    with pytest.raises(GhostError, match="it was deleted"):
        run.forward(9400, over_after(run, 4))
    assert len(run.warnings) == 3


def test_but_not_for_ever(kubectl, monkeypatch):
    monkeypatch.setattr(port_forwarding, "_PATIENCE_SECONDS", -1)
    run = kubectl("break", "refuse")
    with pytest.raises(GhostError, match="lost connection to pod"):
        run.forward(9400, lambda: "")
    assert len(run.runs()) == 1


def test_when_both_have_ended_the_reason_is_the_other_end(kubectl):
    run = kubectl("break")
    with pytest.raises(GhostError, match="serves no longer: gone"):
        run.forward(9400, lambda: "gone")
    assert run.warnings == []


def test_ctrl_c_ends_kubectl_too(kubectl):
    run = kubectl("stay")
    until = time.monotonic() + 60

    def why():
        if run.ports:
            signal.raise_signal(signal.SIGINT)
        assert time.monotonic() < until
        return ""

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run.forward(9400, why)
    finally:
        signal.signal(signal.SIGINT, before)
    [(_, _, pid)] = run.runs()
    assert is_gone(pid)
