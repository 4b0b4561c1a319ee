"""The watcher turn by turn, on a clock of the test's: it goes on where it was, and says when it no longer knows."""

from __future__ import annotations

from collections import defaultdict, deque

import pytest

from ghost_agent.fleet import CLAIMS, COLLECTIONS, NODES, PODS, Fleet
from ghost_agent.options import agent_options
from ghost_agent.snapshot import Snapshot
from ghost_agent.watcher import LONGEST_PAUSE_SECONDS, STALE_SECONDS, WATCH_SECONDS, Expired, Watcher
from kubectl_ghost.domain.errors import GhostError
from tests.unit.agent.kube import by_claim, hardware, node, pod

DOWN = GhostError("the server is down")


class Script:
    """A reader that answers each list and each watch with what comes next: an error, or what is there."""

    def __init__(self, clock):
        self.clock = clock
        self.lists = defaultdict(deque)
        self.watches = defaultdict(deque)
        self.asked = []

    def list(self, collection, keep):
        self.asked.append(("list", collection))
        answer = self.lists[collection].popleft()
        if isinstance(answer, Exception):
            raise answer
        items, version = answer
        return [keep(item) for item in items], version

    def watch(self, collection, version, seconds):
        self.asked.append(("watch", collection, version))
        for event in self.watches[collection].popleft():
            if isinstance(event, Exception):
                raise event
            if isinstance(event, float):
                self.clock.now += event
            else:
                yield event


class Clock:
    """Seconds that go by when a test says so."""

    now = 1000.0

    def __call__(self):
        return self.now


class Watched:
    """A watcher over a script. `turn` takes a turn of one collection, and the time that it is to wait then."""

    def __init__(self):
        self.clock = Clock()
        self.script = Script(self.clock)
        self.told = []
        self.fleet = Fleet()
        self.watcher = Watcher(self.script, self.fleet, problem=self.told.append, clock=self.clock)
        self.snapshot = Snapshot(self.fleet, agent_options(), problem=self.told.append)

    def turn(self, collection=NODES):
        pause = self.watcher.turn(collection)
        self.clock.now += pause
        return pause

    def listed(self, *items, version="10", collection=NODES):
        """Have a collection listed."""
        self.script.lists[collection].append((items, version))
        return self.turn(collection)

    def watching(self, *events, collection=NODES):
        """Have a collection watched, for a minute unless it breaks off."""
        ending = [] if any(isinstance(event, Exception) for event in events) else [WATCH_SECONDS]
        self.script.watches[collection].append([*events, *ending])
        return self.turn(collection)

    def sync(self):
        """Have everything listed, without anything in it."""
        for collection in COLLECTIONS:
            self.listed(collection=collection)

    def nodes(self):
        return [found.name for found in self.snapshot.nodes()]


@pytest.fixture
def watched():
    return Watched()


def event(kind, version, item=None):
    """An event about an object, in a version; a bookmark without one."""
    item = item or {"metadata": {}}
    return kind, {**item, "metadata": {**item["metadata"], "resourceVersion": version}}


def granted(version):
    return event("BOOKMARK", version)


A, B, C = (node(hardware(index=index)) for index in range(3))


def test_a_list_and_then_what_happens(watched):
    assert watched.listed(A, B) == 0
    assert watched.nodes() == ["node-0", "node-1"]
    assert watched.watching(granted("10"), event("ADDED", "11", C), event("DELETED", "12", A)) == 0
    assert watched.nodes() == ["node-1", "node-2"]
    watched.watching(granted("12"))
    assert watched.script.asked == [("list", NODES), ("watch", NODES, "10"), ("watch", NODES, "12")]


def test_a_bookmark_alone_moves_the_version(watched):
    watched.listed(A)
    watched.watching(granted("10"), event("BOOKMARK", "500"))
    watched.watching(granted("500"))
    assert watched.script.asked[-1] == ("watch", NODES, "500")
    assert watched.nodes() == ["node-0"]


def test_a_watch_that_breaks_off_goes_on_after_the_last_event(watched):
    watched.listed(A)
    watched.watching(granted("10"), event("ADDED", "11", B), event("DELETED", "12", B), DOWN)
    watched.watching(granted("12"))
    assert watched.script.asked == [("list", NODES), ("watch", NODES, "10"), ("watch", NODES, "12")]
    assert watched.nodes() == ["node-0"]


def test_a_version_that_is_too_old_means_listing_anew(watched):
    watched.listed(A, B)
    watched.watching(granted("10"), event("ADDED", "11", C), Expired("too old"))
    assert watched.watcher.restarts == 1
    watched.listed(B, version="90")
    watched.watching(granted("90"))
    assert watched.script.asked == [("list", NODES), ("watch", NODES, "10"), ("list", NODES), ("watch", NODES, "90")]
    # A and C were deleted while nobody looked.
    assert watched.nodes() == ["node-1"]
    assert watched.told == []


def test_pods_and_claims_that_went_unseen_are_gone_after_a_list(watched):
    holder, granted_claim = by_claim("train", "gpu-0")
    watched.listed(A)
    watched.listed(holder, collection=PODS)
    watched.listed(granted_claim, collection=CLAIMS)
    assert "train" in "".join(watched.snapshot.text())
    for collection in (PODS, CLAIMS):
        watched.watching(Expired("too old"), collection=collection)
        watched.listed(collection=collection)
    assert "train" not in "".join(watched.snapshot.text())


def test_failures_are_told_once_and_pauses_grow_until_it_goes_again(watched):
    watched.script.lists[NODES].extend([DOWN] * 7)
    assert (
        [watched.turn() for _ in range(7)]
        == [1, 2, 4, 8, 15, 15, 15]
        == [
            *(1, 2, 4, 8),
            *[LONGEST_PAUSE_SECONDS] * 3,
        ]
    )
    assert watched.told == ["nodes: the server is down"]
    watched.listed(A)
    assert watched.watching(granted("10"), DOWN) == 1
    assert watched.watching(DOWN) == 2
    assert watched.watching(granted("10"), DOWN) == 1
    assert set(watched.told) == {"nodes: the server is down"}


def test_a_server_that_ends_watches_at_once_is_not_asked_without_pause(watched):
    watched.listed(A)
    watched.script.watches[NODES].extend([[granted("10")]] * 3)
    assert [watched.turn() for _ in range(3)] == [1, 1, 1]
    watched.script.watches[NODES].append([granted("10"), 0.75])
    assert watched.turn() == 0.25


def test_a_server_that_has_always_forgotten_the_version_is_not_asked_without_pause(watched):
    watched.listed(A)
    for _ in range(3):
        assert watched.watching(Expired("too old")) == 1
        watched.listed(A)


def test_a_server_without_dra_has_no_claims_and_may_learn_of_them(watched):
    assert watched.listed(version="", collection=CLAIMS) == WATCH_SECONDS
    assert watched.listed(version="", collection=CLAIMS) == WATCH_SECONDS
    assert watched.listed(version="5", collection=CLAIMS) == 0
    watched.watching(granted("5"), collection=CLAIMS)
    assert watched.script.asked[-1] == ("watch", CLAIMS, "5")


def test_until_everything_has_been_read_nothing_is_known(watched):
    assert watched.watcher.why_stale() == "nodes: not read yet"
    watched.listed(A)
    assert watched.watcher.why_stale() == "pods: not read yet"
    watched.script.lists[PODS].append(DOWN)
    watched.turn(PODS)
    assert watched.watcher.why_stale() == "pods: the server is down"
    watched.listed(collection=PODS)
    watched.listed(version="", collection=CLAIMS)
    assert watched.watcher.why_stale() == ""


def test_what_fails_for_long_makes_the_fleet_unknown_and_why_is_said(watched):
    watched.sync()
    watched.watching(DOWN, collection=PODS)
    failing = watched.clock.now
    assert watched.watcher.why_stale() == ""
    watched.clock.now = failing - 1 + STALE_SECONDS
    assert watched.watcher.why_stale() == ""
    watched.clock.now += 0.5
    assert watched.watcher.why_stale() == "pods: the server is down"
    watched.watching(GhostError("still down"), collection=PODS)
    assert watched.watcher.why_stale() == "pods: still down"
    watched.watching(granted("10"), collection=PODS)
    # Of the pods all is well again; this test has let nobody look at the nodes in the meantime.
    assert watched.watcher.why_stale() == "nodes: nothing heard for 92s"


def test_a_watch_that_is_granted_again_is_enough_where_nothing_happens(watched):
    watched.sync()
    watched.watching(DOWN)
    stale = []
    # What happens next is looked at within the watch, a minute before it ends.
    watched.script.watches[NODES].append([granted("10"), 45.0])
    original = watched.script.watch

    def looking(*asked):
        for found in original(*asked):
            yield found
            watched.clock.now += STALE_SECONDS + 5
            stale.append(watched.watcher.why_stale())

    watched.script.watch = looking
    watched.turn()
    assert stale == [""]


def test_what_nobody_has_thought_of_is_a_failure_like_any_other(watched):
    watched.sync()
    assert watched.watching(granted("10"), ("ADDED", {"metadata": {"resourceVersion": "11"}}), KeyError("x")) == 1
    assert watched.told == ["nodes: KeyError: 'name'"]
    # What has been missed is not known, so everything is listed.
    watched.listed(A)
    assert watched.nodes() == ["node-0"]


def test_the_age_is_that_of_the_quietest_collection(watched):
    watched.sync()
    watched.clock.now += 40
    assert watched.watcher.age() == 40
    watched.watching(granted("10"), DOWN)
    assert watched.watcher.age() == 41
    watched.watching(granted("10"), DOWN, collection=PODS)
    watched.watching(granted("10"), DOWN, collection=CLAIMS)
    assert watched.watcher.age() == 3


def test_a_first_look_that_fails_is_an_error(watched):
    watched.script.lists[NODES].append(DOWN)
    with pytest.raises(GhostError, match="the server is down"):
        watched.watcher.list_once()


def test_pods_on_no_node_of_ours_take_no_part(watched):
    watched.sync()
    elsewhere = pod("web", on="real-1")
    watched.watching(granted("10"), event("ADDED", "11", elsewhere), collection=PODS)
    assert watched.nodes() == []
    assert "".join(watched.snapshot.text()) == ""
