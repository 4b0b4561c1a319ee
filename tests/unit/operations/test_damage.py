"""One declaration that cannot be read stands in nobody's way who does not need it."""

import pytest

from kubectl_ghost.cluster.resources import DEVICE_CLASSES, NODES, PODS
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.operations.inventory import read_inventory
from kubectl_ghost.operations.views import gpu_views, pool_views
from tests.unit.operations import fleet
from tests.unit.operations.fleet import add_pool, delete_pool
from tests.unit.operations.memory import Memory


def damage(store, name, text="{"):
    store.edit(NODES, name, lambda item: item["metadata"]["annotations"].update({keys.HARDWARE_ANNOTATION: text}))


@pytest.fixture(params=["{", "", "[]", '{"format":9}', '{"format":1,"index":0,"pool":{}}'])
def store(request):
    """Two pools, the first node of one of them damaged."""
    store = fleet.cluster(2, "broken")
    add_pool(Memory(store), "sound", 2)
    damage(store, "broken-0", request.param)
    return store


def test_the_others_are_listed_with_a_line_about_it(store):
    inventory = read_inventory(Memory(store))
    assert list(inventory.nodes) == ["broken-1", "sound-0", "sound-1"]
    assert [view["metadata"]["name"] for view in pool_views(inventory)] == ["broken", "sound"]
    assert {view["spec"]["node"] for view in gpu_views(inventory)} == {"broken-1", "sound-0", "sound-1"}
    (problem,) = inventory.problems
    assert '"broken-0"' in problem


def test_a_fleet_of_nothing_else_has_the_line_all_the_same():
    store = fleet.cluster(1)
    damage(store, "node-0")
    inventory = read_inventory(Memory(store))
    assert (inventory.nodes, len(inventory.problems)) == ({}, 1)


def test_its_pool_can_be_deleted(store):
    assert delete_pool(Memory(store), "broken") == []
    assert store.names(NODES) == ["sound-0", "sound-1"]


def test_another_pool_can_be_deleted_and_the_classes_that_it_may_need_stay(store):
    (warning,) = delete_pool(Memory(store), "sound")
    assert '"broken-0"' in warning
    assert store.names(NODES) == ["broken-0", "broken-1"]
    assert store.names(DEVICE_CLASSES) == ["gpu.nvidia.com", "mig.nvidia.com"]


def test_another_pool_can_be_made_with_a_warning(store):
    (warning,) = add_pool(Memory(store), "third", 1)
    assert '"broken-0"' in warning
    assert "third-0" in store.names(NODES)


def test_another_pool_can_be_changed_with_a_warning(store):
    (warning,) = add_pool(Memory(store), "sound", model="t4")
    assert '"broken-0"' in warning
    assert fleet.settings(store, "sound-1").model == "t4"


def test_who_needs_it_refuses_before_anything_is_written(store):
    writer = Memory(store)
    with pytest.raises(GhostError, match='node "broken-0"'):
        add_pool(writer, "broken", model="t4")
    assert writer.writes == []


def test_a_declaration_of_another_node_is_no_declaration():
    store = fleet.cluster(2)
    text = store.one(NODES, "node-0")["metadata"]["annotations"][keys.HARDWARE_ANNOTATION]
    damage(store, "node-1", text)
    inventory = read_inventory(Memory(store))
    assert inventory.problems == ['the hardware annotation of node "node-1" is that of node "node-0"']


def test_the_pods_on_a_damaged_node_are_nobodys_holders(store):
    store.put(PODS, fleet.pod("training", "broken-0", gpus=1))
    assert read_inventory(Memory(store)).holders == {}


@pytest.mark.parametrize("advertise", [fleet.BOTH, fleet.DEVICE_PLUGIN])
def test_the_device_classes_that_it_may_need_are_left(advertise):
    store = fleet.cluster(2, "broken", advertise=fleet.DRA)
    classes = {key: item["spec"] for key, item in store.objects.items() if key[0] == "DeviceClass"}
    damage(store, "broken-0")
    add_pool(Memory(store), "other", 1, advertise=advertise)
    with pytest.raises(GhostError):
        fleet.run_sync(Memory(store))
    assert {key: item["spec"] for key, item in store.objects.items() if key[0] == "DeviceClass"} == classes
