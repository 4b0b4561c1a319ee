"""Selecting: only what is named is read, what is not there or not ours is refused by name."""

import pytest

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.domain.errors import GhostError, InputError
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations.selecting import select
from tests.unit.operations.fleet import FAKE, add_pool, cluster, node
from tests.unit.operations.memory import Memory


def chosen(store, **selection):
    return [(item.name, item.gpus) for item in select(Memory(store), Selection(**selection))]


def test_by_name_only_those_nodes_are_read():
    store = cluster(3, gpus=4)
    writer = Memory(store)
    found = select(writer, Selection(("node-1/gpu-3", "node-2")))
    assert [(item.name, item.gpus) for item in found] == [("node-1", (3,)), ("node-2", (0, 1, 2, 3))]
    assert sorted(sent.name for sent in writer.sent) == ["node-1", "node-2"]


def test_by_pool_label_and_all_in_the_order_of_their_numbers():
    store = cluster(11, gpus=1)
    add_pool(Memory(store), "other", 1, gpus=1, zones=("z",))
    names = [f"node-{index}" for index in range(11)]
    assert [name for name, _ in chosen(store, pool="node")] == names
    assert chosen(store, selector="topology.kubernetes.io/zone=z") == [("other-0", (0,))]
    assert [name for name, _ in chosen(store, everything=True)] == [*names, "other-0"]


def test_so_many_at_random_from_what_is_named_or_from_all():
    store = cluster(3, gpus=4)
    drawn = chosen(store, number=5, seed=1)
    assert sum(len(gpus) for _, gpus in drawn) == 5
    assert drawn == chosen(store, number=5, seed=1)
    assert drawn != chosen(store, number=5, seed=2)
    assert {name for name, _ in chosen(store, words=("node-1",), number=2)} == {"node-1"}
    with pytest.raises(InputError, match="there are 12"):
        chosen(store, number=13)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({}, "name what is meant"),
        ({"words": ("node-0",), "pool": "node"}, "one of"),
        ({"pool": "node", "everything": True}, "one of"),
        ({"words": ("node-9",)}, 'nodes "node-9" not found'),
        ({"words": ("node-0/gpu-8",)}, "has no gpu-8"),
        ({"pool": "nodes"}, 'pool "nodes" not found'),
        ({"selector": "a=b"}, "no simulated node matches"),
        ({"words": ("theirs",)}, "not simulated by kubectl-ghost"),
        ({"selector": " "}, "the selector is empty"),
    ],
)
def test_refusals(selection, message):
    store = cluster(1)
    store.put(NODES, node("theirs", annotations=FAKE))
    with pytest.raises(GhostError, match=message):
        chosen(store, **selection)
