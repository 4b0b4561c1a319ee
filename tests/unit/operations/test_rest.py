"""At rest nothing is written, and a dry run writes nothing at all."""

import pytest

from kubectl_ghost.cluster.resources import DEVICE_CLASSES, NODES
from kubectl_ghost.cluster.writes import DryRun
from kubectl_ghost.domain.errors import GhostError
from tests.unit.operations import fleet
from tests.unit.operations.fleet import DEVICE_PLUGIN, DRA, add_pool, delete_pool, run_sync, scale_pool, state
from tests.unit.operations.memory import Memory, Store
from tests.unit.operations.test_kill import EVERY, with_pods


@pytest.mark.parametrize("name", EVERY)
def test_a_second_run_writes_nothing(name):
    prepare, run = EVERY[name]
    store = prepare()
    run(Memory(store))
    second = Memory(store)
    run(second)
    assert second.writes == []


@pytest.mark.parametrize("advertise", list(fleet.Advertise))
def test_sync_writes_nothing_where_nothing_differs(advertise):
    writer = Memory(fleet.cluster(3, advertise=advertise))
    assert all(change.verb == "unchanged" for change in run_sync(writer))
    assert writer.writes == []


def test_a_pool_that_is_gone_is_not_found_and_nothing_is_written():
    store = fleet.cluster(2)
    delete_pool(Memory(store), "node")
    writer = Memory(store)
    with pytest.raises(GhostError, match='pool "node" not found'):
        delete_pool(writer, "node")
    assert writer.writes == []
    assert store.objects == {}


def test_deleting_all_of_nothing_writes_nothing():
    writer = Memory()
    delete_pool(writer)
    assert writer.writes == []


@pytest.mark.parametrize("name", EVERY)
def test_a_client_dry_run_changes_nothing(name):
    prepare, run = EVERY[name]
    store = prepare()
    before = state(store)
    writer = Memory(store, dry_run=DryRun.CLIENT)
    run(writer)
    assert writer.writes == []
    assert state(store) == before


def test_a_dry_run_of_a_deletion_changes_nothing():
    store = with_pods()
    writer = Memory(store, dry_run=DryRun.CLIENT)
    delete_pool(writer, "node")
    assert writer.writes == []


def test_a_pool_never_shrinks_by_add_pool_and_says_so():
    store = fleet.cluster(3)
    writer = Memory(store)
    (warning,) = add_pool(writer, count=2)
    assert "scale-pool node 2" in warning
    assert writer.writes == []


def test_a_server_that_drops_the_extended_resource_is_warned_about_and_not_written_to_again():
    store = Store(extended=False)
    (warning,) = add_pool(Memory(store), count=1, advertise=DRA)
    assert "DRAExtendedResource" in warning
    store.edit(DEVICE_CLASSES, "gpu.nvidia.com", lambda item: item["spec"].update(selectors=[]))
    add_pool(Memory(store), count=1)
    assert store.one(DEVICE_CLASSES, "gpu.nvidia.com")["spec"]["selectors"] != []


def test_without_dra_only_the_device_plugins_way_is_there():
    store = Store(dra=False)
    with pytest.raises(GhostError, match="not served"):
        add_pool(Memory(store))
    add_pool(Memory(store), count=2, advertise=DEVICE_PLUGIN)
    run_sync(Memory(store))
    scale_pool(Memory(store), "node", 1)
    assert store.names(NODES) == ["node-0"]
    delete_pool(Memory(store), "node")
    assert store.objects == {}


def test_scaling_to_nothing_is_refused():
    writer = Memory(fleet.cluster(2))
    with pytest.raises(GhostError, match="a pool lives on its nodes"):
        scale_pool(writer, "node", 0)
    assert writer.sent == []


def test_scaling_a_pool_that_is_not_there_is_refused():
    writer = Memory(fleet.cluster(2))
    with pytest.raises(GhostError, match='pool "nodes" not found'):
        scale_pool(writer, "nodes", 2)
    assert writer.writes == []


def test_scaling_down_takes_the_highest_numbers_and_the_pods_on_them():
    store = with_pods()
    scale_pool(Memory(store), "node", 1)
    assert store.names(NODES) == ["node-0"]
    assert store.names(fleet.PODS) == ["claims-high", "claims-low"]
    assert [item["spec"]["nodeName"] for item in store.all(fleet.RESOURCE_SLICES)] == ["node-0"]


def test_both_beside_dra_is_refused():
    writer = Memory(fleet.cluster(1, advertise=DRA))
    with pytest.raises(GhostError, match="two ways"):
        add_pool(writer, "other")
    assert writer.writes == []


def test_a_node_of_somebody_else_of_that_name_is_refused_before_anything_is_written():
    store = Store()
    store.put(NODES, fleet.node("node-2", annotations=fleet.FAKE))
    writer = Memory(store)
    with pytest.raises(GhostError, match="not managed by kubectl-ghost"):
        add_pool(writer, count=3)
    assert writer.writes == []
