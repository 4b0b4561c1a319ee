"""The fleet as it is shown: what is held by whom, what was handed out twice, and who waits."""

from dataclasses import replace

import pytest

from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_CLAIMS
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState, MigMode, Occupancy, OccupancyKind
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.operations.inventory import read_inventory
from kubectl_ghost.operations.reconcile import update_node
from kubectl_ghost.operations.views import gpu_views, pool_views, waiting_views, workload_views
from tests.unit.operations import fleet
from tests.unit.operations.fleet import DRA, add_pool
from tests.unit.operations.memory import Memory

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def look(store, **selectors):
    return read_inventory(Memory(store), **selectors)


def test_a_shared_claim_is_not_handed_out_twice():
    store = fleet.cluster(1)
    for name in ("a", "b"):
        store.put(PODS, fleet.pod(name, "node-0"))
    store.put(RESOURCE_CLAIMS, fleet.claim("shared", "node-0", ["gpu-0"], "a", "b"))
    inventory = look(store)
    assert inventory.shared() == []
    assert [holder.pod for holder in inventory.holders[("node-0", "gpu-0")]] == ["a", "b"]
    assert inventory.held_on("node-0") == 1


def test_a_claim_and_capacity_on_one_gpu_is():
    store = fleet.cluster(1)
    fleet.holding(store, "claiming", "node-0", "gpu-0", "gpu-5")
    store.put(PODS, fleet.pod("asking", "node-0", gpus=2))
    assert look(store).shared() == [("node-0", "gpu-0")]


def test_on_a_node_that_offers_claims_alone_nothing_is_handed_out_twice():
    store = fleet.cluster(1, advertise=DRA)
    fleet.holding(store, "claiming", "node-0", "gpu-0")
    store.put(PODS, fleet.pod("asking", "node-0", gpus=2))
    inventory = look(store)
    assert inventory.shared() == []
    assert inventory.held_on("node-0") == 1


def test_a_pools_numbers():
    store = fleet.cluster(3, zones=("a", "b"), labels=(("team", "x"),))
    add_pool(Memory(store), "other", 1, gpus=2)
    store.edit(NODES, "node-1", lambda item: item["status"].update(READY))
    fleet.holding(store, "p", "node-0", "gpu-0", "gpu-1")
    node, other = pool_views(look(store))
    assert node["status"] == {
        "nodes": 3,
        "readyNodes": 1,
        "gpus": 24,
        "heldGpus": 2,
        "freeGpus": 22,
        "occupiedGpus": 0,
        "faultyGpus": 0,
    }
    assert node["spec"]["zones"] == ["a", "b"]
    assert node["metadata"]["labels"] == {"team": "x"}
    assert node["metadata"]["creationTimestamp"] == store.one(NODES, "node-0")["metadata"]["creationTimestamp"]
    assert (other["metadata"]["name"], other["status"]["gpus"]) == ("other", 2)


def test_from_the_metadata_and_the_servers_table_they_are_the_same():
    store = fleet.cluster(4)
    for name, status in (("node-1", "True"), ("node-2", "False"), ("node-3", "True")):
        conditions = [{"type": "Ready", "status": status}]
        store.edit(NODES, name, lambda item, conditions=conditions: item["status"].update(conditions=conditions))
    store.edit(NODES, "node-3", lambda item: item["spec"].update(unschedulable=True))
    fleet.holding(store, "p", "node-0", "gpu-0")
    whole, brief = look(store), look(store, whole=False)
    assert brief.ready == whole.ready == {"node-1", "node-3"}
    assert pool_views(brief) == pool_views(whole)
    assert gpu_views(brief) == gpu_views(whole)
    assert workload_views(brief) == workload_views(whole)


def test_every_gpu_with_its_holders():
    store = fleet.cluster(2, gpus=2)
    fleet.holding(store, "p", "node-1", "gpu-1")
    views = gpu_views(look(store))
    assert [view["metadata"]["name"] for view in views] == [
        "node-0/gpu-0",
        "node-0/gpu-1",
        "node-1/gpu-0",
        "node-1/gpu-1",
    ]
    assert [view["status"]["holders"] for view in views] == [
        [],
        [],
        [],
        [{"namespace": "default", "pod": "p", "device": "gpu-1", "claim": "claim-p"}],
    ]
    assert len({view["spec"]["uuid"] for view in views}) == 4


OWNERS = {
    "deployment/web": {"owner": ("ReplicaSet", "web-7d4b9"), "labels": {"pod-template-hash": "7d4b9"}},
    "replicaset/web-7d4b9": {"owner": ("ReplicaSet", "web-7d4b9"), "labels": {}},
    "replicaset/bare": {"owner": ("ReplicaSet", "bare"), "labels": {"pod-template-hash": "7d4b9"}},
    "job/train": {"owner": ("Job", "train"), "labels": {"pod-template-hash": "train"}},
    "statefulset/db": {"owner": ("StatefulSet", "db")},
    "pod/p0": {},
}


@pytest.mark.parametrize("workload", OWNERS)
def test_holders_go_by_their_workload(workload):
    store = fleet.cluster(1)
    store.put(PODS, fleet.pod("p0", "node-0", gpus=1, **OWNERS[workload]))
    (view,) = workload_views(look(store))
    assert view["workload"] == workload


def test_an_owner_that_does_not_control_is_no_workload():
    store = fleet.cluster(1)
    made = fleet.pod("p0", "node-0", gpus=1, owner=("Job", "train"))
    made["metadata"]["ownerReferences"][0]["controller"] = False
    store.put(PODS, made)
    assert [view["workload"] for view in workload_views(look(store))] == ["pod/p0"]


def test_a_workloads_pods_gpus_nodes_and_ways_are_put_together():
    store = fleet.cluster(2)
    store.put(PODS, fleet.pod("t0", "node-0", gpus=3, owner=("Job", "train")))
    store.put(PODS, fleet.pod("t1", "node-1", owner=("Job", "train")))
    store.put(RESOURCE_CLAIMS, fleet.claim("c", "node-1", ["gpu-6"], "t1"))
    assert workload_views(look(store)) == [
        {
            "namespace": "default",
            "workload": "job/train",
            "pods": 2,
            "gpus": 4,
            "via": ["claim", "nvidia.com/gpu"],
            "nodes": ["node-0", "node-1"],
        }
    ]


WAITING = {
    "capacity": {"gpus": 1},
    "a claim": {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
    "an init container's": {"initContainers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    "an instance": {"initContainers": [{"resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}]},
}


@pytest.mark.parametrize("spec", WAITING.values(), ids=WAITING)
def test_a_pod_that_waits_for_gpus_is_shown_with_the_schedulers_reason(spec):
    store = fleet.cluster(1)
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    store.put(PODS, fleet.pod("p", phase="Pending", status={"conditions": [condition]}, **spec))
    assert waiting_views(look(store)) == [{"namespace": "default", "pod": "p", "reason": "0/1 nodes are available"}]


def test_one_that_the_scheduler_has_not_seen_is_shown_as_such():
    store = fleet.cluster(1)
    store.put(PODS, fleet.pod("p", gpus=1, phase="Pending"))
    assert waiting_views(look(store))[0]["reason"] == "not looked at by the scheduler yet"


@pytest.mark.parametrize(
    "other",
    [
        fleet.pod("p", phase="Pending"),
        fleet.pod("p", "node-0", gpus=1, phase="Pending"),
        fleet.pod("p", gpus=1, phase="Failed"),
    ],
    ids=["without GPUs", "bound", "ended"],
)
def test_other_pods_do_not_wait(other):
    store = fleet.cluster(1)
    store.put(PODS, other)
    assert waiting_views(look(store)) == []


def test_one_node_or_some_can_be_looked_at():
    store = fleet.cluster(2)
    add_pool(Memory(store), "other", 1, labels=(("team", "x"),))
    assert list(look(store, field_selector="metadata.name=node-1").nodes) == ["node-1"]
    assert list(look(store, selector="team=x").nodes) == ["other-0"]


def test_nodes_that_are_not_simulated_or_not_ours_are_not_looked_at():
    store = fleet.cluster(1)
    store.put(NODES, fleet.node("labelled", labels=fleet.MARKS))
    store.put(NODES, fleet.node("kwok-node", annotations=fleet.FAKE))
    inventory = look(store)
    assert (list(inventory.nodes), inventory.problems) == (["node-0"], [])


def test_without_dra_there_are_no_claims():
    store = fleet.cluster(1, advertise=fleet.DEVICE_PLUGIN)
    store.put(PODS, fleet.pod("p", "node-0", gpus=1))
    store.dra = False
    assert look(store).held_on("node-0") == 1


def declare(store, name, change):
    update_node(Memory(store), store.one(NODES, name), change)


def test_each_gpu_is_counted_once():
    """A broken GPU that a pod still holds is held and faulty, and subtracted from the free ones once."""
    store = fleet.cluster(1)
    fleet.holding(store, "p", "node-0", "gpu-0")
    broken, busy = GpuState(faults=(Fault("xid", 79),)), GpuState(occupancy=Occupancy())
    declare(store, "node-0", lambda old: old.with_gpu(0, broken).with_gpu(1, broken).with_gpu(2, busy))
    (view,) = pool_views(look(store))
    assert view["status"]["heldGpus"] == 1
    assert view["status"]["faultyGpus"] == 2
    assert view["status"]["occupiedGpus"] == 1
    assert view["status"]["freeGpus"] == 5
    assert [gpu["status"]["state"] for gpu in gpu_views(look(store))[:4]] == ["XID 79", "XID 79", "Occupied", "Healthy"]


def test_a_fault_that_nobody_reacts_to_leaves_the_gpu_free():
    store = fleet.cluster(1)
    declare(store, "node-0", lambda old: old.with_gpu(0, GpuState(faults=(Fault("thermal"), Fault("xid", 31)))))
    (view,) = pool_views(look(store))
    # The device plugin and the DRA driver ignore XID 31, and neither looks at temperatures.
    assert (view["status"]["freeGpus"], view["status"]["faultyGpus"]) == (8, 1)


def test_a_split_gpu_is_held_by_who_holds_any_part_of_it():
    store = fleet.cluster(1, gpus=2)
    layout = (MigInstance("3g.40gb", 4), MigInstance("1g.10gb", 0), MigInstance("1g.10gb", 1))
    declare(store, "node-0", lambda old: old.with_gpu(1, GpuState(mig=layout)))
    fleet.holding(store, "p", "node-0", "gpu-1-mig-3g40gb-9-4", "gpu-1-mig-1g10gb-19-0")
    (pool,) = pool_views(look(store))
    assert (pool["status"]["gpus"], pool["status"]["heldGpus"], pool["status"]["freeGpus"]) == (2, 1, 1)
    view = gpu_views(look(store))[1]
    assert view["status"]["mig"] == "3g.40gb,1g.10gb*2"
    assert [holder["device"] for holder in view["status"]["holders"]] == [
        "gpu-1-mig-1g10gb-19-0",
        "gpu-1-mig-3g40gb-9-4",
    ]


def test_a_part_and_the_whole_are_handed_out_twice():
    store = fleet.cluster(1, gpus=2)
    fleet.holding(store, "p", "node-0", "gpu-0-mig-1g10gb-19-0")
    store.put(PODS, fleet.pod("q", "node-0", gpus=1))
    declare(store, "node-0", lambda old: replace(old, settings=replace(old.settings, mig=MigMode.DYNAMIC)))
    assert ("node-0", "gpu-0") in look(store).shared()


def test_two_parts_that_both_came_by_claims_are_not():
    store = fleet.cluster(1, gpus=2)
    fleet.holding(store, "p", "node-0", "gpu-0-mig-1g10gb-19-0")
    fleet.holding(store, "q", "node-0", "gpu-0-mig-1g10gb-19-1")
    assert look(store).shared() == []


def test_what_fillers_hold_is_occupied_and_not_held():
    store = fleet.cluster(1, gpus=2)
    filled = GpuState(occupancy=Occupancy(OccupancyKind.PODS))
    declare(store, "node-0", lambda old: old.with_gpu(0, filled).with_gpu(1, filled))
    marks = {"labels": fleet.MARKS, "namespace": "kubectl-ghost-occupancy"}
    for name in ("node-0-gpu-0", "node-0-gpu-1"):
        fleet.holding(store, name, "node-0", name.removeprefix("node-0-"))
        pod = store.objects.pop(("Pod", "default", name))
        store.put(PODS, {**pod, "metadata": {**pod["metadata"], **marks}})
        claim = store.objects.pop(("ResourceClaim", "default", f"claim-{name}"))
        store.put(RESOURCE_CLAIMS, {**claim, "metadata": {**claim["metadata"], **marks}})
    (view,) = pool_views(look(store))
    assert [view["status"][key] for key in ("gpus", "heldGpus", "occupiedGpus", "freeGpus")] == [2, 0, 2, 0]
    assert [row["workload"] for row in workload_views(look(store))] == ["occupied by filler pods"]


def test_instances_that_were_counted_are_shown_by_their_resource():
    store = fleet.cluster(1, gpus=1, advertise=fleet.DEVICE_PLUGIN)
    declare(store, "node-0", lambda old: old.with_gpu(0, GpuState(mig=(MigInstance("1g.10gb", 0),))))
    part = fleet.pod("p", "node-0")
    part["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/mig-1g.10gb": "1"}
    store.put(PODS, part)
    (row,) = workload_views(look(store))
    assert row["via"] == ["nvidia.com/mig-1g.10gb"]
