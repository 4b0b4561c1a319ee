"""Which pods a change of hardware cuts off: refused, or with force evicted, and nobody else."""

import pytest

from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_CLAIMS
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.operations.holdings import claims_for
from tests.unit.operations import fleet
from tests.unit.operations.fleet import BOTH, DEVICE_PLUGIN, DRA, add_pool
from tests.unit.operations.memory import Memory


def claims(name, node_name, *gpus):
    return lambda store: fleet.holding(store, name, node_name, *gpus)


def capacity(name, node_name, gpus):
    return lambda store: store.put(PODS, fleet.pod(name, node_name, gpus=gpus))


CUT_OFF = {
    "another model of as many GPUs": (BOTH, {"model": "a100"}, claims("p", "node-0", "gpu-0")),
    "another model under capacity": (BOTH, {"model": "a100"}, capacity("p", "node-0", 1)),
    "a GPU beyond the number": (BOTH, {"gpus": 4}, claims("p", "node-1", "gpu-2", "gpu-4")),
    "capacity beyond the number": (BOTH, {"gpus": 4}, capacity("p", "node-1", 5)),
    "no slices any more": (BOTH, {"advertise": DEVICE_PLUGIN}, claims("p", "node-0", "gpu-0")),
    "no capacity any more": (BOTH, {"advertise": DRA}, capacity("p", "node-0", 1)),
    "the other way altogether": (DRA, {"advertise": DEVICE_PLUGIN}, claims("p", "node-0", "gpu-0")),
    "and back": (DEVICE_PLUGIN, {"advertise": DRA}, capacity("p", "node-0", 1)),
}
KEPT = {
    "a GPU below the number": (BOTH, {"gpus": 4}, claims("p", "node-0", "gpu-3")),
    "capacity below the number": (BOTH, {"gpus": 4}, capacity("p", "node-0", 4)),
    "capacity where slices go": (BOTH, {"advertise": DEVICE_PLUGIN}, capacity("p", "node-0", 8)),
    "claims where capacity goes": (BOTH, {"advertise": DRA}, claims("p", "node-0", "gpu-7")),
    "a pod without GPUs": (BOTH, {"model": "t4"}, capacity("p", "node-0", 0)),
    "a pod elsewhere": (BOTH, {"model": "t4"}, capacity("p", "worker", 2)),
    "a claim for a node of that name elsewhere": (BOTH, {"model": "t4"}, claims("p", "other-0", "gpu-0")),
}
GROWING = [{"gpus": 16}, {"count": 9}, {"cpu": "7"}, {"labels": (("a", "1"),)}, {"zones": ("z",)}, {}]


def cluster(advertise, occupy):
    store = fleet.cluster(2, advertise=advertise)
    occupy(store)
    return store


@pytest.mark.parametrize("name", CUT_OFF)
def test_a_change_that_cuts_a_pod_off_is_refused(name):
    advertise, change, occupy = CUT_OFF[name]
    writer = Memory(cluster(advertise, occupy))
    with pytest.raises(
        GhostError, match=r'pool "node": 1 pod\(s\) hold GPUs that would be gone: default/p$'
    ) as refusal:
        add_pool(writer, **change)
    assert "--force" in refusal.value.hint
    assert writer.writes == []


@pytest.mark.parametrize("name", CUT_OFF)
def test_with_force_that_pod_is_evicted_before_anything_else_is_written(name):
    advertise, change, occupy = CUT_OFF[name]
    store = cluster(advertise, occupy)
    store.put(PODS, fleet.pod("bystander", "node-0"))
    writer = Memory(store)
    add_pool(writer, force=True, **change)
    assert str(writer.writes[0]) == "delete pods/p"
    assert store.names(PODS) == ["bystander"]


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("force", [False, True])
def test_a_pod_that_keeps_what_it_has_stays(name, force):
    advertise, change, occupy = KEPT[name]
    store = cluster(advertise, occupy)
    add_pool(Memory(store), force=force, **change)
    assert store.names(PODS) == ["p"]


@pytest.mark.parametrize("change", GROWING)
def test_where_no_gpu_goes_pods_are_not_even_looked_at(change):
    store = cluster(BOTH, claims("p", "node-0", "gpu-7"))
    writer = Memory(store)
    add_pool(writer, **change)
    assert not [sent for sent in writer.sent if sent.resource in (PODS, RESOURCE_CLAIMS)]
    assert store.names(PODS) == ["p"]


@pytest.mark.parametrize("advertise", [DEVICE_PLUGIN, DRA])
def test_offering_them_both_ways_takes_none_away(advertise):
    writer = Memory(fleet.cluster(2, advertise=advertise))
    add_pool(writer, advertise=BOTH)
    assert not [sent for sent in writer.sent if sent.resource is PODS]


def test_a_record_counts_and_not_what_would_be_given_out_anew():
    store = fleet.cluster(1)
    record = fleet.pod("p", "node-0", gpus=1)
    record["metadata"]["annotations"] = {keys.GPUS_ANNOTATION: "gpu-7"}
    store.put(PODS, record)
    with pytest.raises(GhostError, match="default/p"):
        add_pool(Memory(store), gpus=4)


def test_finished_pods_hold_nothing():
    store = fleet.cluster(1)
    store.put(PODS, fleet.pod("p", "node-0", gpus=8, phase="Failed"))
    add_pool(Memory(store), model="t4")
    assert store.names(PODS) == ["p"]


def test_a_holder_of_two_gpus_is_named_once_and_more_than_three_are_summed_up():
    store = fleet.cluster(2)
    for index in range(5):
        fleet.holding(store, f"p{index}", "node-0", f"gpu-{index}", f"gpu-{index + 1}")
    with pytest.raises(GhostError) as refusal:
        add_pool(Memory(store), model="a100")
    assert "5 pod(s)" in refusal.value.message
    assert refusal.value.message.endswith("gone: default/p0, default/p1, default/p2 ...")


def test_a_pod_that_comes_back_before_the_change_is_evicted_after_it():
    store = fleet.cluster(2)
    fleet.holding(store, "first", "node-0", "gpu-6")
    writer, back = Memory(store), []
    writer.before = lambda _, sent: (
        sent.name == "node-0" and not back.append(sent) and fleet.holding(store, "second", "node-1", "gpu-6")
    )
    add_pool(writer, gpus=4, force=True)
    assert back
    assert store.names(PODS) == []


def test_the_pods_of_a_node_with_a_changed_pool_label_are_looked_at_as_well():
    store = fleet.cluster(2)
    store.edit(NODES, "node-1", lambda item: item["metadata"]["labels"].update({keys.POOL_LABEL: "b"}))
    fleet.holding(store, "p", "node-1", "gpu-6")
    with pytest.raises(GhostError, match="default/p"):
        add_pool(Memory(store), gpus=4)


def test_force_evicts_nobody_from_a_new_pool():
    writer = Memory()
    add_pool(writer, count=1, force=True)
    assert not [sent for sent in writer.sent if sent.resource is PODS]


@pytest.mark.parametrize(("number", "asked"), [(2, "get"), (60, "list")])
def test_the_claims_of_few_pods_are_asked_for_one_by_one_and_those_of_many_in_one_list(number, asked):
    store = fleet.cluster(1, gpus=1)
    for index in range(number):
        fleet.holding(store, f"pod-{index}", "node-0", "gpu-0")
    writer = Memory(store)
    found = claims_for(writer, store.all(PODS))
    assert len(found) == number
    assert {sent.verb for sent in writer.sent} == {asked}
    assert len(writer.sent) == (number if asked == "get" else 1)
