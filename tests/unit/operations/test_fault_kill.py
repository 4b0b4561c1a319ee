"""A fault whose command is killed between any two writes."""

import json
import re

import pytest

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.domain.faults import Reactor
from kubectl_ghost.operations.fault import FaultRequest
from tests.unit.operations import fleet
from tests.unit.operations.faults import XID79, busy, declared, fault, taints, time
from tests.unit.operations.fleet import DEVICE_PLUGIN
from tests.unit.operations.memory import Killed, Memory

__all__ = ["time"]

SCENES = {
    "an error of the hardware": (busy, ["node-0"], XID79),
    "an error of an application": (busy, ["node-0"], FaultRequest("xid", 69)),
    "everybody reacts": (busy, ["node-0/gpu-1"], FaultRequest("xid", 94, reactors=tuple(Reactor))),
    "the driver": (busy, ["node-0"], FaultRequest("driver-crash")),
    "device plugin alone": (lambda: busy(DEVICE_PLUGIN), ["node-0"], XID79),
    "two nodes": (lambda: fleet.cluster(2), ["node-0/gpu-1", "node-1/gpu-7"], XID79),
}


def outcome(store):
    """What is there in the end, whenever it was written."""
    found = {"/".join(key): item for key, item in fleet.state(store).items()}
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:-]+Z", "then", json.dumps(found, sort_keys=True))


@pytest.mark.parametrize("name", SCENES)
def test_killed_anywhere_the_same_command_finishes_and_tells_once(name, time):
    prepare, words, request = SCENES[name]
    whole = prepare()
    memory = Memory(whole)
    fault(memory, *words, request=request)
    wanted = outcome(whole)
    assert len(memory.writes) >= 3
    for number in range(1, len(memory.writes) + 1):
        store = prepare()
        with pytest.raises(Killed):
            fault(Memory(store).kill_before(number), *words, request=request)
        time.move(minutes=1)
        fault(Memory(store), *words, request=request)
        assert outcome(store) == wanted, f"killed before write {number}, {memory.writes[number - 1]}"


@pytest.mark.parametrize("name", SCENES)
def test_killed_anywhere_sync_brings_the_hardware_to_what_is_declared(name):
    prepare, words, request = SCENES[name]
    whole = prepare()
    memory = Memory(whole)
    fault(memory, *words, request=request)
    untouched = prepare()
    for number in range(1, len(memory.writes) + 1):
        store = prepare()
        with pytest.raises(Killed):
            fault(Memory(store).kill_before(number), *words, request=request)
        fleet.run_sync(Memory(store))
        for node_name in store.names(NODES):
            expected = whole if declared(store, node_name) else untouched
            assert taints(store, node_name) == taints(expected, node_name)
            assert (
                store.one(NODES, node_name)["status"]["allocatable"]
                == expected.one(NODES, node_name)["status"]["allocatable"]
            )
