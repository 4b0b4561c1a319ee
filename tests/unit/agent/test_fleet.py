"""What is kept of the cluster: little, of the right nodes, and nothing of what has gone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost_agent.fleet import CLAIMS, NODES, PODS, Fleet
from ghost_agent.options import Shard
from kubectl_ghost.domain import keys
from tests.unit.agent.kube import agent, by_claim, claim, collection_of, hardware, node, pod, scrape
from tests.unit.agent.series import users


def fleet(*items, **options):
    known = Fleet(**options)
    put(known, *items)
    return known


def put(known, *items):
    for item in items:
        known.put(collection_of(item), known.keep(collection_of(item), item))


def remove(known, *items):
    for item in items:
        known.remove(collection_of(item), item)


def taken(known):
    """The names of nodes about which something has changed, with the names of their pods and claims."""
    return {name: record and (sorted(record.pods), sorted(record.claims)) for name, record in known.take_changed()}


def empty(known):
    return not (known._records or known._pod_nodes or known._claim_nodes or known._changed)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_objects_come_in_any_order(order):
    items = [node(hardware(1)), *by_claim("train", "gpu-0")]
    known = fleet(*(items[index] for index in order))
    assert taken(known) == {"node-0": (["default/train"], ["default/train-gpu"])}
    assert taken(known) == {}


def test_what_belongs_to_no_node_of_ours_is_told_to_nobody():
    known = fleet(*by_claim("train", "gpu-0"), node(hardware(1), ours=False))
    assert taken(known) == {"node-0": None}


def test_a_node_that_loses_a_mark_is_gone_and_its_pods_come_back_with_it():
    known = fleet(node(hardware(1)), pod("a", gpus=1))
    for lost in ({"ours": False}, {"simulated": False}):
        put(known, node(hardware(1), **lost))
        assert taken(known) == {"node-0": None}
        put(known, node(hardware(1)))
        assert taken(known) == {"node-0": (["default/a"], [])}


def test_a_node_of_which_nothing_has_been_declared_anew_has_not_changed():
    known = fleet(node(hardware(1)))
    taken(known)
    beat = node(hardware(1))
    beat["metadata"]["resourceVersion"] = "2"
    beat["status"] = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    put(known, beat)
    assert taken(known) == {}
    put(known, node(hardware(1), uid="another"))
    assert taken(known) == {"node-0": ([], [])}
    put(known, node(hardware(2)))
    assert taken(known) == {"node-0": ([], [])}


def test_a_pod_that_comes_back_on_another_node_has_left_the_first():
    known = fleet(node(hardware(1)), node(hardware(1, index=1)), pod("a", gpus=1))
    put(known, pod("a", gpus=1, on="node-1", uid="another"))
    assert taken(known) == {"node-0": ([], []), "node-1": (["default/a"], [])}
    put(known, pod("a", gpus=1, on="", uid="a third"))
    assert taken(known) == {"node-1": ([], [])}


def test_a_claim_that_is_allocated_elsewhere_has_left_the_first():
    known = fleet(node(hardware(1)), node(hardware(1, index=1)), claim("c", ["gpu-0"], "a"))
    put(known, claim("c", ["gpu-0"], "a", on="node-1"))
    assert taken(known) == {"node-0": ([], []), "node-1": ([], ["default/c"])}
    put(known, {**claim("c", [], "a"), "status": {}})
    assert taken(known) == {"node-1": ([], [])}


def test_claims_of_other_drivers_are_not_kept():
    known = fleet(claim("c", ["gpu-0"], "a", driver="gpu.example.com"))
    assert empty(known)


def test_when_everything_has_gone_nothing_is_left_however_it_went():
    items = [node(hardware(1)), pod("b", on="real-1"), *by_claim("a", "gpu-0"), claim("c", ["gpu-0"], on="nowhere")]
    known = fleet(*items)
    remove(known, *items)
    taken(known)
    assert empty(known)
    put(known, *items)
    for collection in (NODES, PODS, CLAIMS):
        known.replace(collection, [])
    taken(known)
    assert empty(known)


def test_what_was_never_heard_of_may_go():
    known = fleet()
    remove(known, node(hardware(1)), *by_claim("a", "gpu-0"))
    assert empty(known)


def test_of_a_pod_only_what_is_needed_is_kept():
    fat = pod("a", gpus=1, labels={"team": "x"}, annotations={"note": "x" * 1000, keys.GPU_UTIL_ANNOTATION: "5"})
    fat["spec"]["volumes"] = [{"name": "v"}]
    fat["spec"]["containers"][0]["env"] = [{"name": "E", "value": "x" * 1000}]
    fat["metadata"]["managedFields"] = [{"manager": "m"}]
    fat["status"]["conditions"] = [{"type": "Ready"}]
    kept = Fleet().keep(PODS, fat)
    assert len(str(kept)) < 700
    assert kept["metadata"]["labels"] == {}
    assert kept["metadata"]["annotations"] == {keys.GPU_UTIL_ANNOTATION: "5"}
    assert Fleet(pod_labels=True).keep(PODS, fat)["metadata"]["labels"] == {"team": "x"}


def test_what_is_kept_is_enough_and_leaves_the_object_as_it_was():
    items = [node(hardware(2)), *by_claim("train", "gpu-0"), pod("b", gpus=1, recorded="gpu-1")]
    before = str(items)
    text = scrape(*items)
    assert str(items) == before
    shown = agent()
    for item in items:
        # A watch brings objects without what is empty.
        shown.put({key: value for key, value in item.items() if value})
    assert shown.text() == text


@settings(deadline=None)
@given(total=st.integers(1, 50), index=st.integers(0, 10**6))
def test_every_node_belongs_to_exactly_one_shard(total, index):
    serving = [number for number in range(1, total + 1) if Fleet(Shard(number, total)).serves(f"node-{index}")]
    assert len(serving) == 1


def test_a_shard_keeps_nothing_of_the_nodes_of_others():
    nodes = [node(hardware(1, index=index)) for index in range(20)]
    items = [*nodes, *(pod(f"p-{index}", on=f"node-{index}") for index in range(20))]
    claims = [claim(f"c-{index}", ["gpu-0"], f"p-{index}", on=f"node-{index}") for index in range(20)]
    seen = []
    for number in (1, 2, 3):
        text = scrape(*items, *claims, shard=f"{number}/3")
        seen += [(place, user) for place, held in users(text).items() for user in held]
    assert sorted(place[0] for place, _ in seen) == sorted(f"node-{index}" for index in range(20))
    one = fleet(*items, *claims, shard=Shard(1, 3))
    assert set(one._pod_nodes.values()) == {name for name in one._records if one._records[name].node}
    remove(one, *items, *claims)
    taken(one)
    assert empty(one)


def test_nodes_are_in_the_order_of_their_numbers():
    text = scrape(*(node(hardware(1, index=index)) for index in (10, 2, 0)))
    assert [place[0] for place in users(text)] == ["node-0", "node-2", "node-10"]


def test_a_node_that_cannot_be_read_is_told_and_the_others_are_served():
    damaged = node(hardware(1, index=1))
    damaged["metadata"]["annotations"][keys.HARDWARE_ANNOTATION] = "{"
    shown = agent(node(hardware(1)), damaged)
    assert {place[0] for place in users(shown.text())} == {"node-0"}
    (problem,) = shown.problems
    assert problem.startswith('the hardware annotation of node "node-1" cannot be read')
    shown.put(node(hardware(1, index=1)))
    assert {place[0] for place in users(shown.text())} == {"node-0", "node-1"}


def test_an_adopted_node_is_served_under_its_own_name():
    text = scrape(node(hardware(1, adopted="somebodys")), *by_claim("a", "gpu-0", on="somebodys"))
    assert users(text) == {("somebodys", 0, "", ""): [("default", "a", "main", "")]}
