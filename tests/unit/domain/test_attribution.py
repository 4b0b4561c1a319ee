"""Which container uses which device: every way to a GPU, and every case in which nobody has one."""

import pytest

from kubectl_ghost.domain.attribution import ClaimedDevice, Use, uses
from kubectl_ghost.domain.devices import Offer
from kubectl_ghost.domain.holders import assignments
from tests.unit.agent.kube import by_claim, claim, container, pod

GPU, PART = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"


def offered(*names):
    return {GPU: Offer(names, names)}


def found(claims=(), pods=(), offer=None):
    """Device -> (pod, container, replica) of each use."""
    given = assignments(pods, offer or {})
    used = uses("node-0", offer or {}, given, claims, pods)
    return {device: [(use.pod, use.container, use.replica) for use, _ in held] for device, held in used.items()}


def test_a_claims_device_belongs_to_the_container_that_names_the_claim():
    holder, granted = by_claim("train", "gpu-0")
    holder["spec"]["containers"].append(container("logs"))
    used = uses("node-0", {}, {}, [granted], [holder])
    claimed = ClaimedDevice("train-gpu", "default", "node-0", "gpu-0")
    assert used == {"gpu-0": ((Use("default", "train", "main", "", claimed), holder),)}


def test_two_containers_with_two_claims_have_a_gpu_each():
    holder = pod("a", container("one", "first"), container("two", "second"), claims={"first": "x", "second": "y"})
    claims = [claim("x", ["gpu-0"], "a"), claim("y", ["gpu-1"], "a")]
    assert found(claims, [holder]) == {"gpu-0": [("a", "one", "")], "gpu-1": [("a", "two", "")]}


def test_two_containers_with_one_claim_share_its_devices():
    holder = pod("a", container("one", "gpu"), container("two", "gpu"), claims={"gpu": "x"})
    both = [("a", "one", ""), ("a", "two", "")]
    assert found([claim("x", ["gpu-0", "gpu-1"], "a")], [holder]) == {"gpu-0": both, "gpu-1": both}


def test_a_container_that_names_one_request_has_the_devices_of_that_alone():
    holder = pod("a", container("one", "gpu/r0"), container("two", "gpu/r1"), claims={"gpu": "x"})
    granted = claim("x", ["r0=gpu-0", "r1/best=gpu-1", "r1/best=gpu-2"], "a")
    assert found([granted], [holder]) == {
        "gpu-0": [("a", "one", "")],
        "gpu-1": [("a", "two", "")],
        "gpu-2": [("a", "two", "")],
    }


def test_a_claim_from_a_template_is_known_by_the_pods_status():
    holder = pod("a", container("main", "gpu"), resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
    granted = claim("a-gpu-x7k2p", ["gpu-0"], "a")
    assert found([granted], [holder]) == {"gpu-0": [("a", "", "")]}
    holder["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "a-gpu-x7k2p"}]
    assert found([granted], [holder]) == {"gpu-0": [("a", "main", "")]}


def test_nvidia_gpu_that_is_served_through_a_claim_belongs_to_the_containers_that_asked():
    holder = pod("a", container("one", limits={GPU: 1}), container("two", limits={GPU: 2}), container("logs"))
    holder["status"]["extendedResourceClaimStatus"] = {
        "resourceClaimName": "a-extended-resources-9d8s",
        "requestMappings": [
            {"containerName": "one", "resourceName": GPU, "requestName": "container-0-request-0"},
            {"containerName": "two", "resourceName": GPU, "requestName": "container-1-request-0"},
        ],
    }
    results = ["container-0-request-0=gpu-3", "container-1-request-0=gpu-4", "container-1-request-0=gpu-5"]
    granted = claim("a-extended-resources-9d8s", results, "a")
    assert found([granted], [holder], offered("gpu-0", "gpu-1", "gpu-2")) == {
        "gpu-3": [("a", "one", "")],
        "gpu-4": [("a", "two", "")],
        "gpu-5": [("a", "two", "")],
    }


def test_of_a_shared_claim_every_pod_is_shown_and_after_the_first_has_ended_the_second():
    first, second = (pod(name, container("main", "gpu"), claims={"gpu": "x"}) for name in "ab")
    granted = claim("x", ["gpu-0"], "a", "b")
    assert found([granted], [first, second]) == {"gpu-0": [("a", "main", ""), ("b", "main", "")]}
    first["status"]["phase"] = "Succeeded"
    assert found([granted], [first, second]) == {"gpu-0": [("b", "main", "")]}
    second["status"]["phase"] = "Failed"
    assert found([granted], [first, second]) == {}


def test_a_container_that_asks_for_no_claim_of_its_pod_has_nothing_and_the_pod_has_it():
    holder = pod("a", container("main"), claims={"gpu": "x"})
    assert found([claim("x", ["gpu-0"], "a")], [holder]) == {"gpu-0": [("a", "", "")]}


def test_admin_access_looks_on_and_holds_nothing():
    holder, granted = by_claim("train", "gpu-0")
    watcher = pod("monitor", container("main", "all"), claims={"all": "m"})
    looking = claim("m", ["gpu-0", "gpu-1"], "monitor", admin=True)
    assert found([looking, granted], [watcher, holder]) == {"gpu-0": [("train", "main", "")]}


@pytest.mark.parametrize(
    "granted",
    [
        claim("x", ["gpu-0"], "a", driver="gpu.example.com"),
        claim("x", ["gpu-0"], "a", on="node-1"),
        claim("x", ["gpu-0"]),
        claim("x", [], "a"),
        {**claim("x", [], "a"), "status": {}},
        {**claim("x", [], "a"), "status": {"allocation": None, "reservedFor": None}},
    ],
    ids=["other driver", "other node", "unreserved", "no devices", "not allocated", "nulls"],
)
def test_claims_that_hold_nothing_here(granted):
    assert found([granted], [pod("a", container("main", "gpu"), claims={"gpu": "x"})]) == {}


def test_a_claim_reserved_for_a_former_pod_of_that_name_holds_nothing():
    holder, granted = by_claim("train", "gpu-0", uid="uid-of-the-next-one")
    assert found([granted], [holder]) == {}


def test_claims_of_the_same_name_in_two_namespaces_are_told_apart():
    here, there = (pod("a", container("main", "gpu"), claims={"gpu": "x"}, namespace=space) for space in ("b", "c"))
    claims = [claim("x", ["gpu-0"], "a", namespace="c"), claim("x", ["gpu-1"], "a", namespace="b")]
    used = uses("node-0", {}, {}, claims, [here, there])
    assert {device: use.namespace for device, ((use, _),) in used.items()} == {"gpu-0": "c", "gpu-1": "b"}


def test_init_containers_that_have_ended_are_not_shown_beside_those_that_run():
    # The kubelet lists containers and sidecars alone (podresources/v1): a second series would count the GPU twice.
    inits = [container("fetch", "gpu"), container("proxy", "gpu", restartPolicy="Always")]
    holder = pod("a", container("main", "gpu"), claims={"gpu": "x"}, initContainers=inits)
    assert found([claim("x", ["gpu-0"], "a")], [holder]) == {"gpu-0": [("a", "main", ""), ("a", "proxy", "")]}


def test_a_claim_that_init_containers_alone_name_is_shown_with_them():
    holder = pod("a", container("main"), claims={"gpu": "x"}, initContainers=[container("fetch", "gpu")])
    assert found([claim("x", ["gpu-0"], "a")], [holder]) == {"gpu-0": [("a", "fetch", "")]}


def test_counted_gpus_go_round_the_containers():
    holder = pod("a", container("one", limits={GPU: 1}), container("logs"), container("two", limits={GPU: 2}))
    assert found([], [holder], offered("gpu-0", "gpu-1", "gpu-2", "gpu-3")) == {
        "gpu-0": [("a", "one", "")],
        "gpu-1": [("a", "two", "")],
        "gpu-2": [("a", "two", "")],
    }


def test_what_is_recorded_on_a_pod_goes_round_its_containers_in_that_order():
    holder = pod("a", container("one", limits={GPU: 1}), container("two", limits={GPU: 1}), recorded="gpu-3,gpu-1")
    assert found([], [holder], offered("gpu-0", "gpu-1", "gpu-2", "gpu-3")) == {
        "gpu-1": [("a", "two", "")],
        "gpu-3": [("a", "one", "")],
    }


def test_a_record_that_names_one_gpu_twice_is_none():
    assert found([], [pod("a", gpus=1, recorded="gpu-1,gpu-1")], offered("gpu-0", "gpu-1")) == {
        "gpu-0": [("a", "main", "")]
    }


def test_what_an_init_container_asks_beyond_the_others_stays_with_it():
    holder = pod("a", gpus=1, initContainers=[container("fetch", limits={GPU: 2})])
    assert found([], [holder], offered("gpu-0", "gpu-1", "gpu-2")) == {
        "gpu-0": [("a", "main", "")],
        "gpu-1": [("a", "fetch", "")],
    }


def test_requests_count_where_limits_are_missing():
    asking = container(resources={"requests": {GPU: "1"}})
    assert found([], [pod("a", asking)], offered("gpu-0")) == {"gpu-0": [("a", "main", "")]}


def test_parts_go_to_whoever_asks_for_parts():
    asking = pod("a", container("one", limits={PART: 1}), container("two", limits={GPU: 1, PART: 1}))
    parts = ("gpu-1-mig-1g10gb-19-0", "gpu-1-mig-1g10gb-19-1")
    assert found([], [asking], {**offered("gpu-0"), PART: Offer(parts, parts)}) == {
        "gpu-0": [("a", "two", "")],
        parts[0]: [("a", "one", "")],
        parts[1]: [("a", "two", "")],
    }


def test_pods_that_share_a_gpu_have_a_replica_each():
    shares = ("gpu-0::0", "gpu-1::0", "gpu-0::1", "gpu-1::1")
    sharing = [pod(name, gpus=1) for name in "abc"]
    assert found([], sharing, offered(*shares)) == {
        "gpu-0": [("a", "main", "0"), ("c", "main", "1")],
        "gpu-1": [("b", "main", "0")],
    }


def test_one_gpu_handed_out_both_ways_shows_both():
    holder, granted = by_claim("a", "gpu-0")
    assert found([granted], [holder, pod("b", gpus=1)], offered("gpu-0")) == {
        "gpu-0": [("a", "main", ""), ("b", "main", "")]
    }


def test_the_order_is_the_same_however_the_objects_come():
    pods = [pod(name, container("main", "p", "q"), claims={"p": "x", "q": "y"}) for name in "ba"]
    claims = [claim(name, ["gpu-1", "gpu-0"], "a", "b") for name in "xy"]
    there = uses("node-0", {}, {}, claims, pods)
    back = uses("node-0", {}, {}, claims[::-1], pods[::-1])
    assert list(there.items()) == list(back.items())
    assert [(use.pod, use.claim.name) for use, _ in there["gpu-0"]] == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
