"""GPUs for nodes that somebody else creates: what they get, what they keep, and what every command does there."""

import copy
import json

import pytest

from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.cluster.writes import DryRun
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState, Taint
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations.adoption import Template, adopt_matching
from kubectl_ghost.operations.fault_views import fault_views
from kubectl_ghost.operations.inventory import read_inventory
from kubectl_ghost.operations.selecting import select
from kubectl_ghost.operations.sync import sync
from kubectl_ghost.operations.views import gpu_views, pool_views
from tests.unit.operations import fleet
from tests.unit.operations.autoscaler import (
    ROOM,
    TEMPLATE,
    adopt,
    adopted_cluster,
    broken,
    change,
    cluster,
    live,
    worker,
)
from tests.unit.operations.fleet import add_pool, delete_pool, run_sync, slices_on, state
from tests.unit.operations.memory import Killed, Memory

pytestmark = pytest.mark.usefixtures("order")


def test_matching_nodes_get_gpus_and_nothing_but_gpus():
    store = cluster(labels=(("team", "a"),), zones=("z",), racks=("r",), taints=(Taint("k", "NoExecute"),))
    before = copy.deepcopy(live(store))
    told = [(change.verb.value, change.name) for change in adopt(Memory(store)) if change.verb != "unchanged"]
    after = live(store)
    labels = after["metadata"]["labels"]
    assert ("adopted", "worker-0") in told
    assert after["spec"] == before["spec"]
    gpus = {"nvidia.com/gpu": "2"}
    assert (after["status"]["capacity"], after["status"]["allocatable"]) == ({**ROOM, **gpus}, {**ROOM, **gpus})
    assert labels["autoscaler"] == "x"
    assert labels["nvidia.com/gpu.product"].startswith("NVIDIA-H100")
    assert labels[keys.TEMPLATE_LABEL] == "gpu"
    added = {key for key in set(labels) - set(before["metadata"]["labels"]) if not key.startswith("nvidia.com/")}
    assert added == {keys.TEMPLATE_LABEL, keys.MANAGED_BY_LABEL}
    (slice_,) = slices_on(store, "worker-0")
    assert [device["name"] for device in slice_["spec"]["devices"]] == ["gpu-0", "gpu-1"]
    assert slice_["metadata"]["ownerReferences"][0]["uid"] == after["metadata"]["uid"]
    assert keys.POOL_LABEL not in slice_["metadata"]["labels"]


def test_nodes_that_do_not_match_or_are_not_simulated_are_not_written_to():
    store = cluster()
    before = {name: live(store, name) for name in ("other", "real")}
    writer = Memory(store)
    adopt(writer)
    assert {name: live(store, name) for name in ("other", "real")} == before
    assert not {sent.name for sent in writer.writes} & {"other", "real"}


def test_at_rest_nothing_is_written():
    store = adopted_cluster()
    for again in (adopt, run_sync):
        writer = Memory(store)
        again(writer)
        assert writer.writes == []


def test_a_node_without_capacity_waits_until_kwok_has_initialised_it():
    early = worker("early")
    early["status"] = {}
    store = cluster(early)
    warnings = []
    adopt(Memory(store), warnings)
    assert warnings == ['node "early" has no capacity yet and is not adopted: run again when it is Ready']
    assert live(store, "early")["status"] == {}
    store.edit(NODES, "early", lambda item: item.update(status=worker("early")["status"]))
    adopt(Memory(store))
    assert live(store, "early")["status"]["capacity"] == {**ROOM, "nvidia.com/gpu": "2"}


@pytest.mark.parametrize("prepare", [lambda store: None, lambda store: delete_pool(Memory(store), "gpu")])
def test_without_the_pool_it_is_refused_before_anything_is_written(prepare):
    store = cluster()
    prepare(store)
    writer = Memory(store)
    with pytest.raises(GhostError, match='pool "nodes" not found'):
        list(sync(writer, [], template=Template("nodes", "autoscaler=x")))
    assert writer.writes == []


def test_a_pool_that_is_being_deleted_adopts_no_more():
    store = cluster()
    with pytest.raises(Killed):
        delete_pool(Memory(store).kill_before(2), "gpu")
    writer = Memory(store)
    with pytest.raises(GhostError, match='pool "gpu" is being deleted'):
        list(adopt_matching(writer, TEMPLATE))
    assert writer.writes == []


def test_killed_between_any_two_writes_the_same_command_or_sync_finishes():
    before = cluster()
    whole = Memory(before.copy())
    adopt(whole)
    wanted = state(whole.store)
    for number in range(1, len(whole.writes) + 1):
        store = before.copy()
        with pytest.raises(Killed):
            adopt(Memory(store).kill_before(number))
        alone = store.copy()
        run_sync(Memory(alone))
        marked = [item for item in alone.all(NODES) if keys.ADOPTED_ANNOTATION in item["metadata"]["annotations"]]
        for item in marked:
            assert item == {**item, "status": wanted[("Node", "", item["metadata"]["name"])]["status"]}
            assert slices_on(alone, item["metadata"]["name"])
        adopt(Memory(store))
        assert state(store) == wanted, number


def test_sync_brings_back_what_is_declared():
    store = adopted_cluster()
    before = state(store)
    store.remove(RESOURCE_SLICES, slices_on(store, "worker-0")[0]["metadata"]["name"])
    store.edit(NODES, "worker-0", lambda item: item["status"]["capacity"].pop("nvidia.com/gpu"))
    store.edit(NODES, "worker-b", lambda item: item["metadata"]["labels"].pop("nvidia.com/gpu.count"))
    store.edit(NODES, "worker-b", lambda item: item["metadata"]["labels"].pop(keys.TEMPLATE_LABEL))
    run_sync(Memory(store))
    assert state(store) == before


def test_one_that_has_lost_our_label_is_adopted_again_with_its_first_record():
    store = adopted_cluster()
    broken(store)
    before = state(store)
    store.edit(NODES, "worker-0", lambda item: item["metadata"]["labels"].pop(keys.MANAGED_BY_LABEL))
    adopt(Memory(store))
    assert state(store) == before


def test_sync_makes_none_again_that_its_owner_has_deleted():
    store = adopted_cluster()
    writer = Memory(store)
    writer.before_any = lambda number, sent: number == 1 and store.remove(NODES, "worker-0")
    run_sync(writer)
    assert "worker-0" not in store.names(NODES)
    assert not slices_on(store, "worker-0")


def test_one_that_goes_while_it_is_adopted_is_left_alone():
    store = cluster()
    writer = Memory(store)
    writer.before = lambda number, sent: sent.name == "worker-0" and store.remove(NODES, "worker-0")
    adopt(writer)
    assert "worker-0" not in store.names(NODES)
    assert slices_on(store, "worker-b")


def test_others_may_write_to_it_while_it_is_adopted():
    store = cluster()
    writer, touched = Memory(store), []

    def touch(_, sent):
        if sent.name == "worker-0" and not touched:
            touched.append(sent)
            store.edit(NODES, "worker-0", lambda item: item["metadata"]["labels"].update({"nvidia.com/late": "x"}))

    writer.before = touch
    adopt(writer)
    record = json.loads(live(store)["metadata"]["annotations"][keys.ADOPTED_ANNOTATION])
    assert record["labels"]["nvidia.com/late"] == "x"


def test_they_follow_their_pools_settings_at_the_next_sync():
    store = adopted_cluster()
    add_pool(Memory(store), "gpu", model="l4", gpus=4)
    run_sync(Memory(store))
    assert live(store)["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-L4"
    assert live(store)["status"]["capacity"]["nvidia.com/gpu"] == "4"
    assert len(slices_on(store, "worker-0")[0]["spec"]["devices"]) == 4


def test_they_keep_their_settings_while_pods_hold_what_would_go():
    store = adopted_cluster()
    fleet.holding(store, "p", "worker-0", "gpu-1")
    add_pool(Memory(store), "gpu", gpus=1)
    warnings = []
    list(sync(Memory(store), warnings))
    assert warnings == ['node "worker-0" keeps its GPUs as they are: pods hold some that would be gone']
    assert [live(store, name)["status"]["capacity"]["nvidia.com/gpu"] for name in ("worker-0", "worker-b")] == [
        "2",
        "1",
    ]


def test_requests_are_answered_there_and_pods_recorded():
    store = adopted_cluster()
    store.put(PODS, fleet.pod("counts", "worker-b", gpus=1))
    label = {keys.MIG_CONFIG_LABEL: "all-1g.10gb"}
    store.edit(NODES, "worker-0", lambda item: item["metadata"]["labels"].update(label))
    run_sync(Memory(store))
    assert live(store)["metadata"]["labels"][keys.MIG_CONFIG_STATE_LABEL] == "success"
    assert live(store)["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] == "14"
    annotations = store.objects[("Pod", "default", "counts")]["metadata"]["annotations"]
    assert annotations[keys.GPUS_ANNOTATION] == "gpu-0"


def test_they_are_chosen_by_name_label_pool_and_all():
    store = adopted_cluster()

    def names(**selection):
        return [item.name for item in select(Memory(store), Selection(**selection))]

    assert names(words=("worker-0",)) == ["worker-0"]
    assert names(selector="autoscaler=x") == ["worker-0", "worker-b"]
    assert names(pool="gpu") == names(everything=True) == ["gpu-0", "gpu-1", "worker-0", "worker-b"]


def test_they_are_shown_with_their_pool():
    store = adopted_cluster()
    change(store, "worker-0", lambda declared: declared.with_gpu(0, GpuState(faults=(Fault("xid", 79),))))
    inventory = read_inventory(Memory(store))
    (pool,) = pool_views(inventory)
    assert (pool["metadata"]["name"], pool["status"]["nodes"], pool["status"]["gpus"]) == ("gpu", 4, 8)
    gpus = {view["metadata"]["name"]: view["spec"]["pool"] for view in gpu_views(inventory)}
    assert gpus["worker-b/gpu-1"] == "gpu"
    assert [view["metadata"]["name"] for view in fault_views(inventory, "2026-01-01T00:00:00Z")] == ["worker-0/gpu-0"]


@pytest.mark.parametrize("run", [adopt, lambda writer: delete_pool(writer, "gpu")])
def test_a_client_dry_run_changes_nothing(run):
    for store in (cluster(), adopted_cluster()):
        before = state(store)
        writer = Memory(store, dry_run=DryRun.CLIENT)
        run(writer)
        assert writer.writes == []
        assert state(store) == before


def test_a_fault_with_a_limit_ends_there_too():
    store = adopted_cluster()
    fault = Fault("xid", 79, until="2026-01-01T00:00:00Z")
    change(store, "worker-0", lambda declared: declared.with_gpu(0, GpuState(faults=(fault,))))
    assert live(store)["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    run_sync(Memory(store))
    assert live(store)["status"]["allocatable"]["nvidia.com/gpu"] == "2"
    assert keys.TIMED_LABEL not in live(store)["metadata"]["labels"]


def test_two_at_once_adopt_a_node_once():
    store = cluster()
    writer = Memory(store)
    writer.before = lambda number, _: number == 1 and adopt(Memory(store))
    assert list(adopt_matching(writer, TEMPLATE)) == []
    assert state(store) == state(adopted_cluster())
