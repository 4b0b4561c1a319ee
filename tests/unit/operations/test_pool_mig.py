"""What add-pool checks, warns of and writes for dynamic MIG, MIG strategies and shared GPUs."""

import pytest

from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import MigMode, Sharing, SharingKind
from kubectl_ghost.domain.pools import PoolRequest
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.domain.splitting import SplitRequest
from kubectl_ghost.operations.add_pool import plan_pool
from kubectl_ghost.operations.mig_split import apply_split, plan_split
from tests.unit.operations import fleet
from tests.unit.operations.memory import Memory, Store

DYNAMIC, STATIC = MigMode.DYNAMIC, MigMode.STATIC
MPS, TIME_SLICED = Sharing(SharingKind.MPS, 4), Sharing(SharingKind.TIME_SLICING, 4)


def split(store, *words):
    plan = plan_split(Memory(store), Selection(words), SplitRequest(profiles="1g.10gb*7"))
    return list(apply_split(Memory(store), plan))


def test_a_dynamic_pool_publishes_counters_and_a_slice_a_gpu():
    store = fleet.cluster(1, gpus=9, mig=DYNAMIC)
    contents = [set(item["spec"]) & {"sharedCounters", "devices"} for item in fleet.slices_on(store, "node-0")]
    # Counters of nine GPUs need two slices of at most eight sets.
    assert contents == [{"sharedCounters"}] * 2 + [{"devices"}] * 9


def test_a_server_that_drops_counters_is_told_of_before_anything_is_written():
    for store in (Store(counters=False), fleet.cluster(1, gpus=1)):
        store.counters = False
        writer = Memory(store)
        before = fleet.state(store)
        with pytest.raises(GhostError, match="feature gate DRAPartitionableDevices is off"):
            fleet.add_pool(writer, mig=DYNAMIC)
        assert fleet.state(store) == before
        assert [str(sent) for sent in writer.writes] == ["create resourceslices/kubectl-ghost-probe-node-0"]


def test_a_static_pool_asks_for_no_counters():
    writer = Memory(Store(counters=False))
    fleet.add_pool(writer, count=1)
    assert not [sent for sent in writer.writes if "probe" in sent.name]


@pytest.mark.parametrize(
    ("model", "count", "words"),
    [
        ("h100", 20, []),
        ("h100", 21, ["dynamic MIG on 21 nodes is heavy for the scheduler"]),
        ("b200", 1, ["no source gives multiprocessors, decoders, jpegEngines, memory of all MIG profiles of b200"]),
    ],
)
def test_what_is_left_out_and_what_is_heavy_is_said(model, count, words):
    warnings = plan_pool(Memory(), "node", count, PoolRequest(model=model, mig=DYNAMIC)).warnings
    assert len(warnings) == len(words)
    assert all(line.startswith(word) for line, word in zip(warnings, words, strict=True))
    assert plan_pool(Memory(), "node", count, PoolRequest(model=model)).warnings == []


@pytest.mark.parametrize(("before", "after"), [(STATIC, DYNAMIC), (DYNAMIC, STATIC)])
def test_the_mig_mode_is_not_changed_under_holders(before, after):
    store = fleet.cluster(2, gpus=2, mig=before)
    fleet.holding(store, "train", "node-1", "gpu-1")
    writer = Memory(store)
    with pytest.raises(GhostError, match=r'pool "node": 1 pod\(s\) hold .*: default/train'):
        fleet.add_pool(writer, mig=after)
    assert writer.writes == []
    fleet.add_pool(writer, mig=after, force=True)
    assert store.names(PODS) == []
    assert fleet.settings(store, "node-1").mig is after


def test_layouts_go_with_the_mode():
    store = fleet.cluster(1, gpus=2)
    split(store, "node-0/gpu-1")
    fleet.add_pool(Memory(store), mig=DYNAMIC)
    fleet.add_pool(Memory(store), mig=STATIC)
    (made,) = fleet.slices_on(store, "node-0")
    assert [device["name"] for device in made["spec"]["devices"]] == ["gpu-0", "gpu-1"]
    assert "nvidia.com/mig.config" not in store.one(NODES, "node-0")["metadata"]["labels"]


def test_split_gpus_are_not_shared_by_mps_but_by_time():
    store = fleet.cluster(2, gpus=2)
    split(store, "node-1/gpu-1")
    writer = Memory(store)
    with pytest.raises(GhostError, match='node "node-1" has split GPUs') as refusal:
        fleet.add_pool(writer, sharing=MPS)
    assert "mig-split --pool node --off" in refusal.value.hint
    assert writer.writes == []
    fleet.add_pool(writer, sharing=TIME_SLICED)
    capacity = store.one(NODES, "node-1")["status"]["capacity"]
    assert (capacity["nvidia.com/gpu"], capacity["nvidia.com/mig-1g.10gb"]) == ("4", "7")


@pytest.mark.parametrize(
    ("sharing", "losing"),
    [
        (Sharing(SharingKind.TIME_SLICING, 4, renamed=True), ["a", "b", "c"]),
        (Sharing(SharingKind.TIME_SLICING, 2), ["c"]),
        ("none", ["b", "c"]),
        (MPS, []),
    ],
)
def test_shares_are_not_taken_from_pods(sharing, losing):
    store = fleet.cluster(1, gpus=1, advertise=fleet.DEVICE_PLUGIN, sharing=TIME_SLICED)
    for name in ("a", "b", "c"):
        store.put(PODS, fleet.pod(name, "node-0", gpus=1))
    if losing:
        with pytest.raises(GhostError, match=rf"{len(losing)} pod\(s\) hold .*: default/{losing[0]}"):
            fleet.add_pool(Memory(store), sharing=sharing)
    fleet.add_pool(Memory(store), sharing=sharing, force=True)
    assert store.names(PODS) == [name for name in ("a", "b", "c") if name not in losing]
