"""What the tests of `fault` share: the operation as the command runs it, a clock, and a node in use."""

import importlib
from datetime import UTC, datetime, timedelta

import pytest

from kubectl_ghost.cluster.resources import EVENTS, NODES, PODS, RESOURCE_CLAIMS
from kubectl_ghost.domain.breaking import FaultFilter
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations import clock
from kubectl_ghost.operations.fault import FaultRequest, clear, inject, plan_clear, plan_fault
from kubectl_ghost.operations.fleet import hardware_of
from tests.unit.operations import fleet

WEB = ("ReplicaSet", "web")
XID79 = FaultRequest("xid", 79)
EVERY = FaultFilter()


@pytest.fixture(autouse=True)
def time(monkeypatch):
    """A clock that a test moves, and workers that take one item after the other."""
    moment = [datetime(2026, 1, 2, tzinfo=UTC)]

    class Clock:
        @staticmethod
        def move(**span):
            moment[0] += timedelta(**span)

    for name in ("fault", "change_hardware", "fault_effects", "fault_events", "following_up"):
        monkeypatch.setattr(f"kubectl_ghost.operations.{name}.now", lambda: clock.stamp(moment[0]))
    monkeypatch.setattr(
        "kubectl_ghost.operations.fault.after", lambda seconds: clock.stamp(moment[0] + timedelta(seconds=seconds))
    )
    for name in ("assignments", "change_hardware", "fault_effects", "fault_events", "following_up", "pods"):
        monkeypatch.setattr(importlib.import_module(f"kubectl_ghost.operations.{name}"), "run_ordered", map)
    return Clock


def fault(writer, *words, request=XID79, **selection):
    """Run `fault` to its end; returns what it says, what it changed and who goes."""
    plan = plan_fault(writer, Selection(tuple(words), **selection), request)
    leaving = {}
    changes = list(inject(writer, plan, leaving))
    return plan.summary, changes, leaving


def clearing(writer, *words, meant=EVERY, **selection):
    """Run `fault clear` to its end; returns the plan and the changes."""
    plan = plan_clear(writer, Selection(tuple(words), **selection), meant)
    return plan, list(clear(writer, plan))


def declared(store, name):
    """(GPU or None, fault's name) of a node's faults."""
    return [(index, found.name) for index, found in hardware_of(store.one(NODES, name)).all_faults()]


def taints(store, name):
    """The device taints of a node: device, key=value:effect."""
    return {
        device["name"]: [f"{taint['key']}={taint.get('value', '')}:{taint['effect']}" for taint in device["taints"]]
        for item in fleet.slices_on(store, name)
        for device in item["spec"].get("devices", ())
        if device.get("taints")
    }


def events(store):
    return sorted((item["reason"], item["involvedObject"]["name"], item["count"]) for item in store.all(EVENTS))


def verbs(changes):
    return [f"{change.resource.kind} {change.name} {change.verb}" for change in changes]


def busy(advertise=fleet.BOTH):
    """A node whose first GPUs are held: each by its own pod of a kind; gpu-3 by nobody."""
    store = fleet.cluster(1, advertise=advertise)
    if advertise.slices:
        fleet.holding(store, "claims", "node-0", "gpu-2")
        extended = {"extendedResourceClaimStatus": {"resourceClaimName": "claim-extended"}}
        store.put(PODS, fleet.pod("extended", "node-0", status=extended))
        store.put(RESOURCE_CLAIMS, fleet.claim("claim-extended", "node-0", ["gpu-1"], "extended"))
    if advertise.capacity:
        store.put(PODS, fleet.pod("plugged", "node-0", gpus=1, owner=WEB))
    return store
