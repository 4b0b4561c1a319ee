"""Folders, records, locks, logs and processes."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kubectl_ghost.domain.errors import GhostError, InputError
from kubectl_ghost.engine import processes, record
from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.lock import exclusive
from kubectl_ghost.engine.logs import tail
from kubectl_ghost.engine.progress import Deadline, spoken
from kubectl_ghost.engine.record import Record, Settings, State
from kubectl_ghost.engine.up import Request, asked_settings, up

RECORD = Record(Settings("1.36"), State.CREATED, "1.36.1", "2026-01-01T00:00:00+00:00", {"etcdPort": 1}, "/bin")


def test_the_folders_follow_the_xdg_specification() -> None:
    given = Folders.of_user({"HOME": "/home/me", "XDG_CACHE_HOME": "/cache", "XDG_STATE_HOME": "relative"})
    assert given.cache == Path("/cache/kubectl-ghost")
    assert given.state == Path("/home/me/.local/state/kubectl-ghost")


@pytest.mark.parametrize("name", ["", "..", "a/b", "UPPER", "-a", "a" * 41])
def test_a_cluster_name_cannot_leave_the_folder(name: str, folders: Folders) -> None:
    with pytest.raises(InputError, match="invalid cluster name"):
        folders.cluster(name)


def test_a_record_comes_back_as_it_was_saved(folders: Folders) -> None:
    folder = folders.cluster("a")
    assert record.load(folder) is None
    record.save(folder, RECORD)
    assert record.load(folder) == RECORD
    assert [found.name for found in folders.clusters()] == ["a"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"settings": {"version": "1"}, "state": "other"}'])
def test_a_record_that_cannot_be_read_says_how_to_get_rid_of_it(folders: Folders, text: str) -> None:
    folder = folders.cluster("a")
    folder.root.mkdir(parents=True)
    folder.record.write_text(text)
    with pytest.raises(GhostError) as failure:
        record.load(folder)
    assert "cluster down --name a" in str(failure.value.hint)


@pytest.mark.parametrize(
    ("request_", "differing"),
    [
        (Request("a", feature_gates="A=true"), "feature gates"),
        (Request("a", runtime="docker"), "runtime"),
        (Request("a", disable_qps_limits=True), "disable qps limits"),
        (Request("a", audit_policy="other"), "audit policy"),
    ],
)
def test_other_settings_are_refused(folders: Folders, request_: Request, differing: str) -> None:
    record.save(folders.cluster("a"), RECORD)
    with pytest.raises(GhostError, match=f"with another setting of {differing}"):
        up(request_, folders, lambda line: None)


def test_what_was_not_asked_for_is_no_setting() -> None:
    assert asked_settings(Request()) == {}
    assert asked_settings(Request(version="v1.36.1")) == {"version": "1.36"}


def test_a_lock_keeps_others_waiting_and_says_so(tmp_path: Path) -> None:
    told: list[str] = []
    order: list[str] = []
    waits = threading.Event()

    def tell(line: str) -> None:
        told.append(line)
        waits.set()

    def second() -> None:
        with exclusive(tmp_path / "lock", tell, "the first"):
            order.append("second")

    with exclusive(tmp_path / "lock", tell, "nobody"):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert told == ["waiting for the first"]


def test_the_tail_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert tail(log) == []
    log.write_text("".join(f"line {number}\n" for number in range(100)) + "x" * 5000)
    last = tail(log, lines=3)
    assert last[:2] == ["line 98", "line 99"]
    assert len(last[2]) < 1000


def test_pid_files_are_corrected_by_what_runs(folders: Folders) -> None:
    """A number that somebody else has inherited is forgotten; a component that nobody noted is found and ended."""
    folder = folders.cluster("a")
    programs, pids = folder.components / "bin", folder.components / "pids"
    programs.mkdir(parents=True)
    pids.mkdir()
    component = subprocess.Popen(
        [str(programs / "etcd"), "-c", "import time; print(flush=True); time.sleep(60)"],
        executable=sys.executable,
        stdout=subprocess.PIPE,
    )
    with component:
        assert component.stdout is not None
        component.stdout.readline()
        (pids / "kube-apiserver.pid").write_text(str(os.getpid()))
        assert processes.running(folder) == {"etcd": component.pid}
        processes.repair_pid_files(folder)
        assert processes.noted(folder) == {"etcd"}
        processes.stop(folder)
        assert component.wait(10) != 0
    assert processes.running(folder) == {}
    assert processes.noted(folder) == set()


def test_spans_and_deadlines() -> None:
    assert (spoken(48.2), spoken(272)) == ("48s", "4m32s")
    assert Deadline(0).passed
    assert not Deadline(60).passed


def test_settings_are_a_value() -> None:
    assert dataclasses.replace(RECORD, settings=Settings("1.36")) == RECORD
