"""Feature gates: a server that drops what would be declared is found out before anything is."""

import pytest

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.operations.features import require_counters, require_device_taints
from tests.unit.operations.fleet import cluster
from tests.unit.operations.memory import Memory, Store

CHECKS = {require_device_taints: "DRADeviceTaints", require_counters: "DRAPartitionableDevices"}


@pytest.mark.parametrize("check", CHECKS)
def test_a_server_that_keeps_everything_is_fine_and_nothing_is_stored(check):
    store = cluster(1)
    before = dict(store.objects)
    check(Memory(store), store.one(NODES, "node-0"))
    assert store.objects == before


@pytest.mark.parametrize(("check", "gate"), CHECKS.items())
def test_a_gate_that_is_off_is_named(check, gate):
    store = cluster(1)
    off = Store(taints=False, counters=False)
    off.objects = store.objects
    with pytest.raises(GhostError, match=gate) as refusal:
        check(Memory(off), store.one(NODES, "node-0"))
    assert f"{gate}=true" in refusal.value.hint
