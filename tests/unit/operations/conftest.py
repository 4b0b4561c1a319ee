"""How the items of one step are worked through: by one thread, so that the n-th write is the same in every run."""

import importlib

import pytest


def forwards(function, items):
    """The first item first."""
    for item in items:
        yield function(item)


def backwards(function, items):
    """The last item first, as it may happen with many threads; results in the order of the items all the same."""
    yield from reversed([function(item) for item in reversed(list(items))])


@pytest.fixture(params=[forwards, backwards], ids=["forwards", "backwards"])
def order(request, monkeypatch):
    """Run what is concurrent in both extreme orders."""
    _work_by(request.param, monkeypatch)


@pytest.fixture
def in_order(monkeypatch):
    """Run what is concurrent one after the other."""
    _work_by(forwards, monkeypatch)


_CONCURRENT = (
    "add_pool",
    "adoption",
    "answering",
    "assignments",
    "change_hardware",
    "delete_pool",
    "fault_effects",
    "fault_events",
    "filler_judging",
    "fillers",
    "following_up",
    "pods",
    "sync",
    "watch_fleet",
)


def _work_by(function, monkeypatch):
    for name in _CONCURRENT:
        monkeypatch.setattr(importlib.import_module(f"kubectl_ghost.operations.{name}"), "run_ordered", function)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    """Nothing here is slower than memory."""
    monkeypatch.setattr("kubectl_ghost.operations.evicting._LOOK_SECONDS", 0)
    monkeypatch.setattr("kubectl_ghost.operations.fault._LATECOMERS_PAUSE_SECONDS", 0)
    monkeypatch.setattr("kubectl_ghost.operations.fault._LATECOMERS_SECONDS", 0)
    monkeypatch.setattr("kubectl_ghost.operations.watch_fleet._PAUSE_SECONDS", 0)
