"""A node whose declaration somebody has damaged: it is said what is wrong with it, and all others go on."""

import pytest

from ghost_agent.fleet import NODES, Fleet
from ghost_agent.options import agent_options
from ghost_agent.snapshot import Snapshot
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION
from tests.unit.agent.fleets import a_node

DAMAGED = 'the hardware annotation of node "node-0" cannot be read: it is no JSON'


def damaged(index=0):
    found = a_node(index)
    found["metadata"]["annotations"][HARDWARE_ANNOTATION] = "nonsense"
    return found


def put(fleet, item):
    fleet.put(NODES, fleet.keep(NODES, item))


def test_it_is_told_from_a_node_that_is_not_there():
    fleet, told = Fleet(), []
    snapshot = Snapshot(fleet, agent_options(), problem=told.append)
    put(fleet, damaged())
    put(fleet, a_node(1))
    for ask in (snapshot.node, snapshot.text):
        with pytest.raises(GhostError, match=DAMAGED) as caught:
            ask("node-0")
        assert "Restore the annotation" in caught.value.hint
        with pytest.raises(KeyError):
            ask("node-9")
    assert [node.name for node in snapshot.nodes()] == ["node-1"]
    assert 'Hostname="node-1"' in "".join(snapshot.text())
    assert len(told) == 1
    put(fleet, a_node(0))
    assert snapshot.node("node-0").name == "node-0"
    put(fleet, damaged())
    fleet.remove(NODES, a_node(0))
    with pytest.raises(KeyError):
        snapshot.node("node-0")
