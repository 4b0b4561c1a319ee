"""Where `metrics backfill` writes to, what it leaves there, and what it does about a node that cannot be read."""

import os
import socket
import stat
import threading
from functools import partial

import pytest

from ghost_agent import history
from kubectl_ghost import cli
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.commands import session
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION
from tests.unit.agent.fleets import a_node
from tests.unit.operations.memory import Memory, Store

SHORT = ["--from", "2m", "--step", "1m", "--fields", "DCGM_FI_DEV_GPU_UTIL"]


@pytest.fixture
def store(monkeypatch):
    """A cluster with two nodes."""
    store = Store()
    for index in range(2):
        store.put(NODES, a_node(index))
    monkeypatch.setattr(session, "writer", lambda *_: Memory(store))
    return store


@pytest.fixture
def here(monkeypatch, tmp_path):
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capfd, *arguments):
    code = cli.run(["metrics", "backfill", *SHORT, *arguments])
    return code, *capfd.readouterr()


def nodes_of(text):
    assert text.endswith("# EOF\n")
    return sorted({part.split('"')[0] for part in text.split('Hostname="')[1:]})


def test_a_file_of_that_name_is_replaced_and_nothing_else_is_left(store, here, capfd):
    (here / "history.om").write_text("of yesterday")
    code, out, err = run(capfd, "-o", "history.om")
    assert (code, out) == (ExitCode.OK, "")
    assert err.endswith(" series written to history.om\n")
    assert nodes_of((here / "history.om").read_text()) == ["node-0", "node-1"]
    assert os.listdir(here) == ["history.om"]


def test_a_link_is_followed_and_stays(store, here, capfd):
    (here / "elsewhere").mkdir()
    (here / "history.om").symlink_to("elsewhere/real.om")
    code, _, _ = run(capfd, "-o", "history.om")
    assert code == ExitCode.OK
    assert (here / "history.om").is_symlink()
    assert nodes_of((here / "elsewhere" / "real.om").read_text()) == ["node-0", "node-1"]
    assert os.listdir(here / "elsewhere") == ["real.om"]


def test_what_is_no_plain_file_is_written_to_and_not_replaced(store, here, capfd):
    os.mkfifo(here / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((here / "pipe").read_text()))
    reader.start()
    code, _, _ = run(capfd, "-o", "pipe")
    still_a_pipe = stat.S_ISFIFO((here / "pipe").stat().st_mode)
    if not still_a_pipe:
        # Else the reader would wait for ever.
        (here / "pipe").unlink()
    assert still_a_pipe
    assert code == ExitCode.OK
    reader.join()
    assert nodes_of(read[0]) == ["node-0", "node-1"]


def test_a_longest_name_is_a_name(store, here, capfd):
    code, _, _ = run(capfd, "-o", "a" * 255)
    assert code == ExitCode.OK
    assert os.listdir(here) == ["a" * 255]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("plain/x.om", "error: cannot write plain/x.om: "),
        ("plain/", "error: cannot write plain/node-0.om: "),
        ("socket", "error: cannot write socket: No such device or address"),
        ("a" * 256, "error: File name too long: aaa"),
    ],
)
def test_where_nothing_can_be_written_it_says_where(output, words, store, here, capfd):
    (here / "plain").write_text("mine")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        code, out, err = run(capfd, "-o", output)
    assert (code, out) == (ExitCode.ERROR, "")
    assert words in err
    assert (here / "plain").read_text() == "mine"
    assert sorted(os.listdir(here)) == ["plain", "socket"]


def test_a_disk_that_is_full_in_the_middle_is_told_as_that(store, here, capfd, monkeypatch):
    monkeypatch.setattr(history, "TemporaryFile", partial(open, "/dev/full"))
    code, out, err = run(capfd, "-o", "history.om")
    assert (code, out) == (ExitCode.ERROR, "")
    assert "No space left on device" in err
    assert "TMPDIR" in err
    assert os.listdir(here) == []


@pytest.mark.parametrize("text", ["nonsense", None])
def test_a_node_that_cannot_be_read_is_told_and_the_others_go_on(text, store, here, capfd):
    damaged = a_node(0)
    if text is None:
        del damaged["metadata"]["annotations"][HARDWARE_ANNOTATION]
    else:
        damaged["metadata"]["annotations"][HARDWARE_ANNOTATION] = text
    store.put(NODES, damaged)
    code, _, err = run(capfd, "-o", "d/")
    assert code == ExitCode.OK
    assert 'Warning: the hardware annotation of node "node-0" cannot be read' in err
    assert os.listdir(here / "d") == ["node-1.om"]
    code, out, err = run(capfd, "--node", "node-0")
    assert (code, out) == (ExitCode.ERROR, "")
    assert err.startswith('error: the hardware annotation of node "node-0" cannot be read')
