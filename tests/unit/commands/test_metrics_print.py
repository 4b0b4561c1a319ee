"""`metrics print` of a node that a scrape would get nothing of."""

import pytest

from kubectl_ghost import cli
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.commands import session
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION
from tests.unit.agent.kube import hardware, node
from tests.unit.operations.memory import Memory, Store


@pytest.fixture
def store(monkeypatch):
    """A cluster with a node that is well, one whose declaration is damaged, and one that is down."""
    store = Store()
    damaged = node(hardware(index=1))
    damaged["metadata"]["annotations"][HARDWARE_ANNOTATION] = "{}"
    for item in (node(hardware()), damaged, node(hardware(index=2, faults=(Fault("node-down"),)))):
        store.put(NODES, item)
    monkeypatch.setattr(session, "writer", lambda *_: Memory(store))
    return store


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("node-1", 'error: the hardware annotation of node "node-1" cannot be read: format is missing\nRestore'),
        ("node-2", "error: node node-2 is down or its driver does not answer\n"),
        ("node-3", 'Error from server (NotFound): nodes "node-3" not found\n'),
    ],
)
def test_a_node_without_an_answer(name, words, store, capfd):
    assert cli.run(["metrics", "print", "--node", name]) == ExitCode.ERROR
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(words)


def test_all_that_answer(store, capfd):
    assert cli.run(["metrics", "print", "--fields", "DCGM_FI_DEV_GPU_UTIL"]) == ExitCode.OK
    out, err = capfd.readouterr()
    assert {line.split('Hostname="')[1].split('"')[0] for line in out.splitlines() if line[0] != "#"} == {"node-0"}
    assert err == 'Warning: the hardware annotation of node "node-1" cannot be read: format is missing\n'
