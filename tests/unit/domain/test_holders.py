"""Attribution: the cases in which GPUs are shared, doubled, looked at by admins, or given back."""

from kubectl_ghost.domain.devices import Offer
from kubectl_ghost.domain.holders import Holder, assignments, holders, requested_devices


def gpus_offered(number, *, broken=()):
    names = tuple(f"gpu-{index}" for index in range(number))
    return {"nvidia.com/gpu": Offer(names, tuple(name for name in names if name not in broken))}


CLAIM_NODES = {"n": {}}
CAPACITY_NODES = {"n": gpus_offered(2)}


def requested_gpus(pod):
    return requested_devices(pod).get("nvidia.com/gpu", 0)


def pod(name, *, gpus=0, node="n", phase="Running", recorded=None, created="2026-01-01T00:00:00Z", **spec):
    annotations = {"kubectl-ghost.dev/gpus": recorded} if recorded else {}
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": annotations,
            "creationTimestamp": created,
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"limits": limits}}], **spec},
        "status": {"phase": phase},
    }


def claim(name, devices, pods, *, admin=False, driver="gpu.nvidia.com"):
    results = [
        {"driver": driver, "pool": "n", "device": device, **({"adminAccess": True} if admin else {})}
        for device in devices
    ]
    return {
        "metadata": {"name": name, "namespace": "default"},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": item, "uid": f"uid-{item}"} for item in pods],
        },
    }


def test_a_claims_devices_belong_to_its_pod():
    held = holders(CLAIM_NODES, [claim("c", ["gpu-0", "gpu-1"], ["a"])], [pod("a")])
    assert held == {("n", "gpu-0"): [Holder("default", "a", "c")], ("n", "gpu-1"): [Holder("default", "a", "c")]}


def test_a_shared_claim_has_both_pods():
    held = holders(CLAIM_NODES, [claim("c", ["gpu-0"], ["a", "b"])], [pod("a"), pod("b")])
    assert [holder.pod for holder in held[("n", "gpu-0")]] == ["a", "b"]


def test_of_a_shared_claim_the_second_stays_when_the_first_has_ended():
    held = holders(CLAIM_NODES, [claim("c", ["gpu-0"], ["a", "b"])], [pod("a", phase="Succeeded"), pod("b")])
    assert [holder.pod for holder in held[("n", "gpu-0")]] == ["b"]


def test_two_claims_of_one_pod_are_told_apart():
    held = holders(CLAIM_NODES, [claim("c1", ["gpu-0"], ["a"]), claim("c2", ["gpu-1"], ["a"])], [pod("a")])
    assert held[("n", "gpu-0")][0].claim == "c1"
    assert held[("n", "gpu-1")][0].claim == "c2"


def test_admin_access_holds_nothing():
    assert holders(CLAIM_NODES, [claim("c", ["gpu-0"], ["a"], admin=True)], [pod("a")]) == {}


def test_other_drivers_and_unallocated_claims_hold_nothing():
    unallocated = {"metadata": {"name": "u", "namespace": "default"}}
    foreign = claim("c", ["gpu-0"], ["a"], driver="gpu.example.com")
    assert holders(CLAIM_NODES, [unallocated, foreign], [pod("a")]) == {}


def test_by_capacity_the_oldest_gets_the_lowest():
    younger, older = pod("a", gpus=1, created="2026-01-02T00:00:00Z"), pod("b", gpus=1)
    assert assignments([younger, older], gpus_offered(2)) == {
        ("default", "b"): ("gpu-0",),
        ("default", "a"): ("gpu-1",),
    }


def test_a_record_stands_when_an_older_pod_has_gone():
    assert assignments([pod("a", gpus=1, recorded="gpu-1"), pod("b", gpus=1)], gpus_offered(2)) == {
        ("default", "a"): ("gpu-1",),
        ("default", "b"): ("gpu-0",),
    }


def test_a_recorded_gpu_is_not_given_to_another_pod():
    assert assignments([pod("a", gpus=1, recorded="gpu-0"), pod("b", gpus=1)], gpus_offered(2)) == {
        ("default", "a"): ("gpu-0",),
        ("default", "b"): ("gpu-1",),
    }


def test_whoever_comes_when_all_are_given_out_has_none():
    older, younger = pod("a", gpus=2), pod("b", gpus=1, created="2026-01-02T00:00:00Z")
    assert assignments([older, younger], gpus_offered(2))[("default", "b")] == ()
    assert len(holders(CAPACITY_NODES, [], [older, younger])) == 2


def test_of_the_same_age_the_name_decides():
    assert assignments([pod("b", gpus=1), pod("a", gpus=1)], gpus_offered(2))[("default", "a")] == ("gpu-0",)


def test_a_claim_for_a_pod_that_is_gone_or_another_of_that_name_holds_nothing():
    former = claim("c", ["gpu-0"], ["a"])
    former["status"]["reservedFor"][0]["uid"] = "uid-of-the-former"
    assert holders(CLAIM_NODES, [former], [pod("a")]) == {}


def test_a_claim_on_a_node_that_is_not_simulated_holds_nothing():
    assert holders({"other": {}}, [claim("c", ["gpu-0"], ["a"])], [pod("a")]) == {}


def test_requests_count_where_limits_are_missing_and_nonsense_counts_as_none():
    asking = pod("a")
    asking["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "2"}}
    assert requested_gpus(asking) == 2
    asking["spec"]["containers"].append({"name": "d", "resources": {"limits": {"nvidia.com/gpu": "many"}}})
    assert requested_gpus(asking) == 2


def test_finished_pods_give_their_gpus_back():
    held = holders(CAPACITY_NODES, [], [pod("a", gpus=1, phase="Failed"), pod("b", gpus=1)])
    assert held == {("n", "gpu-0"): [Holder("default", "b")]}


def test_one_gpu_handed_out_both_ways_shows_both():
    held = holders(CAPACITY_NODES, [claim("c", ["gpu-0"], ["a"])], [pod("a"), pod("b", gpus=1)])
    assert held[("n", "gpu-0")] == [Holder("default", "a", "c"), Holder("default", "b")]


def test_pods_elsewhere_are_not_looked_at():
    assert holders(CAPACITY_NODES, [], [pod("a", gpus=1, node="other")]) == {}


def test_nvidia_gpu_served_through_dra_is_not_counted_twice():
    served = pod("a", gpus=1)
    served["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "c"}
    assert requested_gpus(served) == 0


def test_init_containers_count_as_the_scheduler_counts():
    limits = {"resources": {"limits": {"nvidia.com/gpu": "3"}}}
    sidecar = {"restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    assert requested_gpus(pod("a", gpus=2, initContainers=[limits])) == 3
    assert requested_gpus(pod("a", gpus=2, initContainers=[sidecar])) == 3
    assert requested_gpus(pod("a", gpus=1, initContainers=[sidecar, limits])) == 4


def test_a_record_that_cannot_be_true_is_none():
    for nonsense in ("gpu-7", "gpu-0,gpu-0", "gpu-0,foo", "gpu-0", "gpu-0,gpu-1,gpu-2"):
        assert assignments([pod("a", gpus=2, recorded=nonsense)], gpus_offered(3)) == {
            ("default", "a"): ("gpu-0", "gpu-1")
        }


def test_of_two_pods_with_the_same_record_the_older_has_it():
    older, copy = pod("a", gpus=1, recorded="gpu-1"), pod("b", gpus=1, recorded="gpu-1", created="2026-01-02T00:00:00Z")
    assert assignments([copy, older], gpus_offered(2)) == {("default", "a"): ("gpu-1",), ("default", "b"): ("gpu-0",)}


def test_a_broken_gpu_is_given_to_nobody_new_and_stays_with_who_has_it():
    offered = gpus_offered(2, broken=["gpu-0"])
    assert assignments([pod("a", gpus=1)], offered) == {("default", "a"): ("gpu-1",)}
    assert assignments([pod("a", gpus=1, recorded="gpu-0")], offered) == {("default", "a"): ("gpu-0",)}


def test_instances_are_given_out_under_their_own_resource():
    offered = {
        **gpus_offered(1),
        "nvidia.com/mig-1g.10gb": Offer(("gpu-1-mig-a", "gpu-1-mig-b"), ("gpu-1-mig-a", "gpu-1-mig-b")),
    }
    asking = pod("a")
    asking["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/mig-1g.10gb": "2", "nvidia.com/gpu": "1"}
    assert set(assignments([asking], offered)[("default", "a")]) == {"gpu-0", "gpu-1-mig-a", "gpu-1-mig-b"}


def test_pods_that_share_a_gpu_are_all_its_holders():
    shares = ("gpu-0::0", "gpu-1::0", "gpu-0::1", "gpu-1::1")
    nodes = {"n": {"nvidia.com/gpu": Offer(shares, shares)}}
    held = holders(nodes, [], [pod(name, gpus=1) for name in "abc"])
    assert [holder.pod for holder in held[("n", "gpu-0")]] == ["a", "c"]
    assert [holder.pod for holder in held[("n", "gpu-1")]] == ["b"]
