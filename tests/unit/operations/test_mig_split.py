"""mig-split: nobody's GPU is taken unasked, and a kill anywhere is made good by the same command or by sync."""

from dataclasses import replace

import pytest

from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import MigStrategy, Occupancy
from kubectl_ghost.domain.keys import GPUS_ANNOTATION
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.domain.splitting import SplitRequest
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.mig_split import apply_split, plan_split
from kubectl_ghost.operations.reconcile import update_node
from tests.unit.operations import fleet, occupancy
from tests.unit.operations.memory import Killed, Memory

SEVEN = SplitRequest(profiles="1g.10gb*7")
OFF = SplitRequest()


def split(writer, *words, request=SEVEN, force=False, **selection):
    """Run mig-split to its end; returns the changes."""
    plan = plan_split(writer, Selection(words, **selection), request, force=force)
    return list(apply_split(writer, plan))


def verbs(changes):
    return {f"{change.resource.kind}/{change.name}": change.verb.value for change in changes}


def mig_of(store, name="node-0"):
    hardware = hardware_of(store.one(NODES, name))
    return [len(hardware.gpu(index).mig or ()) for index in range(hardware.settings.gpus)]


def pod_asking(name, node_name, resource, number=1, **more):
    made = fleet.pod(name, node_name, **more)
    made["spec"]["containers"][0]["resources"]["limits"] = {resource: str(number)}
    return made


def occupy(store, name, index):
    """Declare a GPU busy."""

    def busy(hardware):
        return hardware.with_gpu(index, replace(hardware.gpu(index), occupancy=Occupancy()))

    update_node(Memory(store), store.one(NODES, name), busy)


def test_node_and_slice_follow_the_declaration():
    store = fleet.cluster(2, gpus=2)
    assert [change.verb.value for change in split(Memory(store), "node-0/gpu-1")] == ["configured", "configured"]
    assert store.one(NODES, "node-0")["status"]["capacity"]["nvidia.com/mig-1g.10gb"] == "7"
    (made,) = fleet.slices_on(store, "node-0")
    assert [device["name"] for device in made["spec"]["devices"]] == [
        "gpu-0",
        *(f"gpu-1-mig-1g10gb-19-{start}" for start in range(7)),
    ]
    assert mig_of(store, "node-1") == [0, 0]


def test_a_second_time_writes_nothing():
    store = fleet.cluster(2, gpus=2)
    split(Memory(store), pool="node")
    for force in (False, True):
        again = Memory(store)
        assert {change.verb.value for change in split(again, pool="node", force=force)} == {"unchanged"}
        assert again.writes == []


def test_off_brings_back_exactly_what_was_there_but_for_the_name_of_the_layout():
    store = fleet.cluster(1, gpus=2)
    before = store.one(NODES, "node-0")
    slice_before = fleet.slices_on(store, "node-0")[0]["spec"]
    split(Memory(store), "node-0")
    split(Memory(store), "node-0", request=OFF)
    after = store.one(NODES, "node-0")
    added = {"nvidia.com/mig.config": "all-disabled", "nvidia.com/mig.config.state": "success"}
    assert after["metadata"]["labels"] == {**before["metadata"]["labels"], **added}
    assert after["status"] == before["status"]
    assert fleet.slices_on(store, "node-0")[0]["spec"] == slice_before


@pytest.mark.parametrize(("gpus", "generation"), [(8, 1), (32, 2)])
def test_the_generation_rises_once_where_more_than_one_slice_changes(gpus, generation):
    store = fleet.cluster(1, gpus=gpus)
    split(Memory(store), "node-0")
    found = [item["spec"]["pool"] for item in fleet.slices_on(store, "node-0")]
    # 224 instances need two slices of at most 128 devices.
    assert found == [{"generation": generation, "name": "node-0", "resourceSliceCount": len(found)}] * len(found)
    assert len(found) == (1 if gpus == 8 else 2)


def held_by_claim():
    store = fleet.cluster(2, gpus=2)
    fleet.holding(store, "train", "node-0", "gpu-1")
    return store


def held_by_count():
    """The pod has gpu-0, though nobody has written that down."""
    store = fleet.cluster(2, gpus=2, advertise=fleet.DEVICE_PLUGIN)
    store.put(PODS, fleet.pod("train", "node-0", gpus=2))
    return store


def held_instance():
    store = fleet.cluster(2, gpus=2)
    split(Memory(store), "node-0/gpu-1", request=SplitRequest(profiles="3g.40gb*2"))
    fleet.holding(store, "train", "node-0", "gpu-1-mig-3g40gb-9-4")
    return store


def held_instance_by_count():
    store = fleet.cluster(2, gpus=2, advertise=fleet.DEVICE_PLUGIN)
    split(Memory(store), "node-0/gpu-1", request=SplitRequest(profiles="3g.40gb*2"))
    store.put(PODS, pod_asking("train", "node-0", "nvidia.com/mig-3g.40gb"))
    return store


def held_beside():
    """Another GPU than gpu-1; with the single strategy it is not counted any more once gpu-1 is split."""
    store = fleet.cluster(1, gpus=2, advertise=fleet.DEVICE_PLUGIN, mig_strategy=MigStrategy.SINGLE)
    store.put(PODS, fleet.pod("train", "node-0", gpus=1))
    return store


HELD = [held_by_claim, held_by_count, held_instance, held_instance_by_count, held_beside]


@pytest.mark.parametrize("prepare", HELD)
def test_a_held_gpu_is_not_split_anew_and_the_refusal_names_the_pod(prepare):
    store = prepare()
    writer = Memory(store)
    with pytest.raises(GhostError, match=r'node "node-0": 1 pod\(s\) hold .*: default/train') as refusal:
        split(writer, "node-0/gpu-1")
    assert "--force" in refusal.value.hint
    assert writer.writes == []


@pytest.mark.parametrize("prepare", HELD)
def test_with_force_the_pod_goes_first_and_in_the_open(prepare):
    store = prepare()
    changes = split(Memory(store), "node-0/gpu-1", force=True)
    shown = list(verbs(changes).items())
    assert ("Pod/train", "deleted") in shown
    assert shown.index(("Pod/train", "deleted")) < shown.index(("Node/node-0", "configured"))
    assert store.names(PODS) == []
    assert mig_of(store)[1] == 7


def test_a_held_gpu_that_has_the_layout_already_is_no_obstacle():
    store = held_instance()
    writer = Memory(store)
    assert set(verbs(split(writer, "node-0/gpu-1", request=SplitRequest(profiles="3g.40gb*2"))).values()) == {
        "unchanged"
    }
    assert writer.writes == []
    assert store.names(PODS) == ["train"]


def test_even_an_instance_that_would_stay_is_an_obstacle():
    store = fleet.cluster(1, gpus=1)
    split(Memory(store), "node-0", request=SplitRequest(profiles="3g.40gb:4"))
    fleet.holding(store, "train", "node-0", "gpu-0-mig-3g40gb-9-4")
    with pytest.raises(GhostError, match="default/train"):
        split(Memory(store), "node-0", request=SplitRequest(profiles="3g.40gb*2"))


def test_a_pod_on_another_gpu_stays_and_keeps_it():
    store = fleet.cluster(1, gpus=3, advertise=fleet.DEVICE_PLUGIN)
    store.put(PODS, fleet.pod("first", "node-0", gpus=1))
    store.put(PODS, fleet.pod("second", "node-0", gpus=1))
    split(Memory(store), "node-0/gpu-0", force=True)
    assert store.names(PODS) == ["second"]
    assert store.one(PODS, "second")["metadata"]["annotations"][GPUS_ANNOTATION] == "gpu-1"
    split(Memory(store), "node-0/gpu-0", request=OFF)
    # gpu-0 is free again and lower, but what was written down stands.
    fleet.run_sync(Memory(store))
    assert store.one(PODS, "second")["metadata"]["annotations"][GPUS_ANNOTATION] == "gpu-1"


def test_a_busy_gpu_is_refused_and_released_by_force():
    store = fleet.cluster(1, gpus=2)
    occupy(store, "node-0", 1)
    with pytest.raises(GhostError, match="node-0/gpu-1 is declared busy"):
        split(Memory(store), "node-0")
    split(Memory(store), "node-0", force=True)
    assert mig_of(store) == [7, 7]
    assert store.one(NODES, "node-0")["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] == "14"


def kept_busy_by_pods(advertise=fleet.BOTH):
    """Pods keep both GPUs of node-0 and one of node-1 busy."""
    store = fleet.cluster(2, gpus=2, advertise=advertise)
    occupancy.occupy(Memory(store), Selection(("node-0", "node-1/gpu-0")), kind=occupancy.PODS_KIND)
    return store


@pytest.mark.usefixtures("in_order")
@pytest.mark.parametrize("advertise", list(fleet.Advertise))
@pytest.mark.parametrize("target", ["node-0/gpu-1", "node-0"])
def test_what_kept_a_gpu_busy_goes_with_its_occupancy(target, advertise):
    store = kept_busy_by_pods(advertise)
    shown = verbs(split(Memory(store), target, force=True))
    assert shown["Pod/node-0-gpu-1"] == "deleted"
    left = ["node-1-gpu-0"] if target == "node-0" else ["node-0-gpu-0", "node-1-gpu-0"]
    assert occupancy.fillers(store) == occupancy.declared_fillers(store) == left
    assert occupancy.filler_claims(store) == (left if advertise.slices else [])
    resting = Memory(store)
    fleet.run_sync(resting)
    assert resting.writes == []


@pytest.mark.usefixtures("in_order")
def test_the_last_filler_takes_their_namespace_with_it_also_after_a_kill_and_in_a_dry_run():
    before = kept_busy_by_pods()
    whole = Memory(before.copy())
    done = verbs(split(whole, pool="node", force=True))
    assert occupancy.leftovers(whole.store) == []
    assert verbs(split(Memory(before, dry_run=DryRun.CLIENT), pool="node", force=True)) == done
    for number in range(1, len(whole.writes) + 1):
        store = before.copy()
        with pytest.raises(Killed):
            split(Memory(store).kill_before(number), pool="node", force=True)
        split(Memory(store), pool="node", force=True)
        assert fleet.state(store) == fleet.state(whole.store), number


def test_a_filler_on_a_gpu_that_would_not_be_offered_any_more_stands_in_the_way():
    store = fleet.cluster(1, gpus=2, advertise=fleet.DEVICE_PLUGIN, mig_strategy=MigStrategy.SINGLE)
    occupancy.occupy(Memory(store), Selection(("node-0/gpu-0",)), kind=occupancy.PODS_KIND)
    store.edit(PODS, "node-0-gpu-0", lambda item: item["spec"].update(nodeName="node-0"), occupancy.SPACE)
    with pytest.raises(GhostError, match="kubectl-ghost-occupancy/node-0-gpu-0"):
        split(Memory(store), "node-0/gpu-1")


@pytest.mark.parametrize("device", ["gpu-0", None])
def test_a_pod_placed_by_the_old_hardware_meanwhile_is_evicted_too(device):
    store = fleet.cluster(1, gpus=1)
    writer = Memory(store)

    def comes_back(_, sent):
        if sent.verb == "replace" and sent.resource is RESOURCE_SLICES:
            if device:
                fleet.holding(store, "late", "node-0", device)
            else:
                store.put(PODS, fleet.pod("late", "node-0", gpus=1))

    writer.before = comes_back
    changes = split(writer, "node-0", force=True)
    assert verbs(changes)["Pod/late"] == "deleted"
    assert store.names(PODS) == []


def test_a_pod_placed_by_the_new_hardware_stays():
    store = fleet.cluster(1, gpus=2)
    writer = Memory(store)

    def comes(_, sent):
        if sent.verb == "replace" and sent.resource is RESOURCE_SLICES:
            fleet.holding(store, "by-claim", "node-0", "gpu-0-mig-1g10gb-19-3")
            store.put(PODS, pod_asking("by-count", "node-0", "nvidia.com/mig-1g.10gb", 2))
            store.put(PODS, fleet.pod("whole", "node-0", gpus=1))

    writer.before = comes
    split(writer, "node-0/gpu-0", force=True)
    assert store.names(PODS) == ["by-claim", "by-count", "whole"]


def test_a_dry_run_says_what_would_be_and_changes_nothing():
    store = held_by_claim()
    before = fleet.state(store)
    changes = verbs(split(Memory(store, dry_run=DryRun.CLIENT), "node-0", force=True))
    assert (changes["Pod/train"], changes["Node/node-0"]) == ("deleted", "configured")
    assert fleet.state(store) == before


def test_figures_without_a_source_are_warned_of_once():
    store = fleet.cluster(2, gpus=1, model="b200")
    plan = plan_split(Memory(store), Selection(pool="node"), SplitRequest(profiles="3g.90gb,1g.23gb"))
    assert plan.warnings == [
        "no source gives multiprocessors, decoders, jpegEngines, memory of 3g.90gb of b200: left out"
    ]
    assert plan.summary == "3g.90gb,1g.23gb on 2 GPUs of 2 nodes"


def test_two_models_each_get_their_own_layout_of_one_name():
    store = fleet.cluster(1, gpus=1)
    fleet.add_pool(Memory(store), "small", 1, model="a30", gpus=1)
    split(Memory(store), everything=True, request=SplitRequest(config="all-balanced"))
    assert (mig_of(store), mig_of(store, "small-0")) == ([4], [3])


def test_one_bad_target_and_nothing_is_written():
    store = fleet.cluster(1, gpus=1)
    fleet.add_pool(Memory(store), "old", 1, model="t4", gpus=1)
    writer = Memory(store)
    with pytest.raises(GhostError, match="has no MIG"):
        split(writer, everything=True)
    assert writer.writes == []


def test_another_command_at_the_same_time_is_not_undone():
    store = fleet.cluster(1, gpus=2)
    writer = Memory(store)

    def interfere(number, sent):
        if number == 1:
            split(Memory(store), "node-0/gpu-1", request=SplitRequest(profiles="7g.80gb"))

    writer.before = interfere
    split(writer, "node-0/gpu-0")
    assert mig_of(store) == [7, 1]
    (made,) = fleet.slices_on(store, "node-0")
    assert len(made["spec"]["devices"]) == 8


SPLITS = {
    "fresh": (lambda: fleet.cluster(2, gpus=2), {}),
    "many slices": (lambda: fleet.cluster(1, gpus=32), {}),
    "held by claim": (held_by_claim, {"force": True}),
    "held by count": (held_by_count, {"force": True}),
    "held instance": (held_instance, {"force": True}),
}


def interrupted(prepare, **flags):
    """The store after each kill, and what was killed."""
    before = prepare()
    whole = Memory(before.copy())
    split(whole, pool="node", **flags)
    assert whole.writes
    for number in range(1, len(whole.writes) + 1):
        store = before.copy()
        with pytest.raises(Killed):
            split(Memory(store).kill_before(number), pool="node", **flags)
        yield store, f"killed before write {number}, {whole.writes[number - 1]}"


@pytest.mark.usefixtures("order")
@pytest.mark.parametrize("name", SPLITS)
def test_the_same_command_finishes_what_a_kill_left(name):
    prepare, flags = SPLITS[name]
    done = prepare()
    split(Memory(done), pool="node", **flags)
    for store, when in interrupted(prepare, **flags):
        split(Memory(store), pool="node", **flags)
        assert fleet.state(store) == fleet.state(done), when


@pytest.mark.usefixtures("order")
@pytest.mark.parametrize("name", SPLITS)
def test_sync_brings_every_node_to_what_is_declared_on_it(name):
    prepare, flags = SPLITS[name]
    outcomes = []
    for run in (lambda store: None, lambda store: split(Memory(store), pool="node", **flags)):
        store = prepare()
        run(store)
        fleet.run_sync(Memory(store))
        outcomes.append(by_node(store))
    for store, when in interrupted(prepare, **flags):
        fleet.run_sync(Memory(store))
        for node_name, found in by_node(store).items():
            assert found in [outcome[node_name] for outcome in outcomes], (when, node_name)


def test_who_came_by_the_old_slices_after_a_kill_is_evicted_by_the_same_command():
    store = held_by_claim()
    with pytest.raises(Killed):
        # The pod is evicted, and node-0 declared anew; its slice is still the old one.
        split(Memory(store).kill_before(4), "node-0", force=True)
    assert mig_of(store) == [7, 7]
    fleet.holding(store, "late", "node-0", "gpu-1")
    fleet.run_sync(Memory(store))
    assert store.names(PODS) == ["late"]
    assert verbs(split(Memory(store), "node-0", force=True))["Pod/late"] == "deleted"


def by_node(store):
    """Each node's labels, resources and devices."""
    return {
        item["metadata"]["name"]: (
            item["metadata"],
            item["status"],
            [found["spec"]["devices"] for found in fleet.slices_on(store, item["metadata"]["name"])],
        )
        for item in map(_bare, store.all(NODES))
    }


def _bare(item):
    kept = {key: item["metadata"][key] for key in ("name", "labels", "annotations")}
    return {**item, "metadata": kept}
