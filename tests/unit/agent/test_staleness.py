"""When the fleet counts as unknown, so that no scrape shows what may long be otherwise."""

import pytest

from ghost_agent.fleet import Fleet
from ghost_agent.watcher import Watcher
from tests.unit.agent.fleets import Cluster, a_node


class Clock:
    """One that stands until it is moved."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watcher(clock):
    return Watcher(Cluster(nodes=[a_node(0)]), Fleet(), problem=lambda _: None, clock=clock)


def test_before_everything_has_been_read(watcher):
    assert watcher.why_stale() == "nodes: not read yet"
    watcher.list_once()
    assert watcher.why_stale() == ""


def test_a_server_that_neither_answers_nor_refuses(watcher, clock):
    """As when it hangs in the middle of a list, whose time is not limited."""
    watcher.list_once()
    clock.now += 90
    assert watcher.why_stale() == ""
    clock.now += 0.1
    assert watcher.why_stale() == "nodes: nothing heard for 90s"
    watcher.list_once()
    assert watcher.why_stale() == ""
