"""Occupied GPUs on a real cluster: what the scheduler gives out beside them, and what `release` gives back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.fleet import (
    Json,
    apply,
    audit_mark,
    claim_template,
    devices_of,
    objects,
    pod,
    running,
    settled,
    tool_writes,
    unschedulable,
)
from tests.e2e.support import E2ECluster, eventually

SPACE = "kubectl-ghost-occupancy"
IN_SPACE = ("-n", SPACE)
NONE_GIVES_WAY = (
    "Warning: the scheduler preempts no pod for a claimed device: of these nodes' fillers none will give way\n"
)


@pytest.fixture
def fleet(empty: E2ECluster) -> Iterator[E2ECluster]:
    """A cluster with nothing on it, from which everything that keeps GPUs busy is taken in the end."""
    yield empty
    empty.ghost("release", "--all", check=False)
    empty.kubectl("delete", "namespace", SPACE, "--ignore-not-found")
    empty.kubectl("delete", "priorityclass", "urgent", "--ignore-not-found")


def add_pool(cluster: E2ECluster, *flags: str, nodes: int = 4, gpus: int = 4) -> None:
    cluster.ghost("add-pool", "--count", str(nodes), "--gpus-per-node", str(gpus), *flags)


def busy_devices(cluster: E2ECluster) -> list[tuple[str, str]]:
    """(node, device) of every device that carries the taint of occupancy."""
    return sorted(
        (item["spec"]["nodeName"], device["name"])
        for item in objects(cluster, "resourceslices")
        for device in item["spec"].get("devices", [])
        if any(taint["key"] == "kubectl-ghost.dev/occupied" for taint in device.get("taints", []))
    )


def claiming(name: str, number: int, **spec: Any) -> list[Json]:
    """A pod with a claim of so many GPUs."""
    return [claim_template(name, {"count": number}), pod(name, template=name, **spec)]


def uid(cluster: E2ECluster, app: str) -> str:
    [found] = objects(cluster, "pods", "-l", f"app={app}")
    return str(found["metadata"]["uid"])


def urgent() -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }


def test_a_fragmented_fleet_keeps_a_large_job_waiting_until_one_node_is_released(fleet: E2ECluster) -> None:
    add_pool(fleet)
    done = fleet.ghost("occupy", "--pool", "node", "--free", "2,2,2,1")
    assert done.stderr == "9 GPUs on 4 nodes are busy now (7 free)\n"
    assert len(busy_devices(fleet)) == 9
    apply(fleet, *claiming("large", 4))
    assert "cannot allocate all claims" in unschedulable(fleet, "large")
    apply(fleet, *claiming("small", 2))
    running(fleet, "small")
    assert not set(devices_of(fleet, "small")) & set(busy_devices(fleet))
    [small_node] = {node for node, _ in devices_of(fleet, "small")}
    waiting = uid(fleet, "large")
    released = "node-0" if small_node != "node-0" else "node-1"
    fleet.ghost("release", released)
    running(fleet, "large")
    assert uid(fleet, "large") == waiting
    assert devices_of(fleet, "large") == [(released, f"gpu-{index}") for index in range(4)]


def test_a_fragmented_fleet_on_the_device_plugins_path(fleet: E2ECluster) -> None:
    add_pool(fleet, "--advertise", "device-plugin")
    fleet.ghost("occupy", "--pool", "node", "--free", "2,2,2,1")
    allocatable = [node["status"]["allocatable"]["nvidia.com/gpu"] for node in objects(fleet, "nodes")]
    assert allocatable == ["2", "2", "2", "1"]
    apply(fleet, pod("large", gpus=4))
    assert "Insufficient nvidia.com/gpu" in unschedulable(fleet, "large")
    apply(fleet, pod("small", gpus=2, nodeSelector={"kubernetes.io/hostname": "node-1"}))
    running(fleet, "small")
    waiting = uid(fleet, "large")
    fleet.ghost("release", "node-2")
    running(fleet, "large")
    assert uid(fleet, "large") == waiting
    [large] = objects(fleet, "pods", "-l", "app=large")
    assert large["spec"]["nodeName"] == "node-2"


def test_fillers_hold_exactly_the_claimed_devices_and_release_takes_everything(fleet: E2ECluster) -> None:
    add_pool(fleet, nodes=2)
    done = fleet.ghost("occupy", "node-0/gpu-1", "node-0/gpu-3", "node-1/gpu-2", "--with", "pods", "--priority", "-5")
    assert done.stderr == NONE_GIVES_WAY + "3 GPUs on 2 nodes are busy now (5 free)\n"
    pods = objects(fleet, "pods", *IN_SPACE)
    assert {item["status"]["phase"] for item in pods} == {"Running"}
    assert {item["spec"]["priority"] for item in pods} == {-5}
    held = [
        (result["pool"], result["device"])
        for claim in objects(fleet, "resourceclaims", *IN_SPACE)
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert sorted(held) == [("node-0", "gpu-1"), ("node-0", "gpu-3"), ("node-1", "gpu-2")]
    assert busy_devices(fleet) == []
    apply(fleet, *claiming("all-of-one", 4))
    assert "cannot allocate all claims" in unschedulable(fleet, "all-of-one")
    fleet.ghost("release", "node-1")
    running(fleet, "all-of-one")
    assert [item["metadata"]["name"] for item in objects(fleet, "pods", *IN_SPACE)] == ["node-0-gpu-1", "node-0-gpu-3"]
    fleet.ghost("release", "--all")
    eventually(lambda: not fleet.kubectl("get", "namespace", SPACE, "--ignore-not-found").stdout)
    assert SPACE not in fleet.kubectl("get", "priorityclasses", "-o", "name").stdout


@pytest.mark.parametrize("mode", ["client", "server"])
def test_a_dry_run_tells_what_would_be_made_and_makes_none_of_it(fleet: E2ECluster, mode: str) -> None:
    add_pool(fleet, nodes=1, gpus=2)
    rehearsal = ("occupy", "node-0", "--with", "pods", "--priority", "3", f"--dry-run={mode}")
    first = fleet.ghost(*rehearsal)
    assert first.stderr == NONE_GIVES_WAY + "2 GPUs on 1 node would be busy (0 free)\n"
    assert fleet.kubectl("get", "namespace", SPACE, "--ignore-not-found").stdout == ""
    fleet.ghost("occupy", "node-0/gpu-0", "--with", "pods")
    second = fleet.ghost(*rehearsal)
    assert "pod/node-0-gpu-1 created" in second.stdout
    assert [item["spec"]["priority"] for item in objects(fleet, "pods", *IN_SPACE)] == [0]


def test_a_namespace_on_its_way_out_does_not_stand_in_the_way(fleet: E2ECluster) -> None:
    add_pool(fleet, nodes=1)
    for _ in range(3):
        fleet.ghost("occupy", "node-0", "--with", "pods")
        assert len(objects(fleet, "pods", *IN_SPACE)) == 4
        fleet.ghost("release", "node-0")


def test_a_pod_of_more_priority_preempts_a_filler_on_the_device_plugins_path(fleet: E2ECluster) -> None:
    add_pool(fleet, "--advertise", "device-plugin", nodes=1)
    fleet.ghost("occupy", "node-0", "--with", "pods")
    records = {
        item["metadata"]["name"]: item["metadata"]["annotations"]["kubectl-ghost.dev/gpus"]
        for item in objects(fleet, "pods", *IN_SPACE)
    }
    assert records == {f"node-0-gpu-{index}": f"gpu-{index}" for index in range(4)}
    apply(fleet, pod("equal", gpus=1))
    assert "Insufficient nvidia.com/gpu" in unschedulable(fleet, "equal")
    apply(fleet, urgent(), pod("urgent", gpus=1, priorityClassName="urgent"))
    running(fleet, "urgent")
    assert len(objects(fleet, "pods", *IN_SPACE)) == 3


def test_a_pod_of_more_priority_does_not_preempt_a_filler_that_holds_a_claim(fleet: E2ECluster) -> None:
    """The scheduler's dry run of a preemption does not give back the devices of a victim's claim (1.36)."""
    add_pool(fleet, nodes=1, gpus=1)
    fleet.ghost("occupy", "node-0", "--with", "pods")
    apply(fleet, urgent(), *claiming("urgent", 1, priorityClassName="urgent"))
    assert "1 cannot allocate all claims" in unschedulable(fleet, "urgent")
    eventually(lambda: "1 Preemption is not helpful for scheduling" in unschedulable(fleet, "urgent"))
    assert [item["status"]["phase"] for item in objects(fleet, "pods", *IN_SPACE)] == ["Running"]
    fleet.ghost("release", "--all")
    running(fleet, "urgent")


def test_a_gpu_that_a_pod_holds_is_left_to_it_unless_forced(fleet: E2ECluster) -> None:
    add_pool(fleet, nodes=1, gpus=2)
    apply(fleet, *claiming("holder", 1))
    running(fleet, "holder")
    [(node, device)] = devices_of(fleet, "holder")
    refused = fleet.ghost("occupy", f"{node}/{device}", check=False)
    assert refused.returncode == 1
    assert "default/holder" in refused.stderr
    assert "--force" in refused.stderr
    assert busy_devices(fleet) == []
    forced = fleet.ghost("occupy", f"{node}/{device}", "--force")
    assert 'pod "holder" deleted from default namespace' in forced.stdout
    assert busy_devices(fleet) == [(node, device)]
    assert objects(fleet, "pods") == []
    # The other GPU is still to be had, and only that one.
    apply(fleet, *claiming("next", 1))
    running(fleet, "next")
    assert devices_of(fleet, "next") != [(node, device)]
    apply(fleet, *claiming("late", 1))
    unschedulable(fleet, "late")


def instance(profile: str) -> Json:
    """A request for an instance of a profile."""
    expression = f'device.attributes["gpu.nvidia.com"].profile == "{profile}"'
    return {"deviceClassName": "mig.nvidia.com", "selectors": [{"cel": {"expression": expression}}]}


def test_a_part_of_a_gpu_is_busy_and_the_rest_is_to_be_had(fleet: E2ECluster) -> None:
    add_pool(fleet, "--mig", "dynamic", nodes=1, gpus=1)
    fleet.ghost("occupy", "node-0/gpu-0", "--profiles", "4g.40gb")
    for name, request in (
        ("whole", {}),
        ("seven", instance("7g.80gb")),
        ("four", instance("4g.40gb")),
        ("three", instance("3g.40gb")),
    ):
        apply(fleet, claim_template(name, request), pod(name, template=name))
    running(fleet, "three")
    assert devices_of(fleet, "three") == [("node-0", "gpu-0-mig-3g40gb-9-4")]
    for name in ("whole", "seven", "four"):
        assert "cannot allocate all claims" in unschedulable(fleet, name)
    fleet.kubectl("delete", "pod", "seven", "four", "--force")
    fleet.ghost("release", "node-0")
    time.sleep(1)
    assert objects(fleet, "pods", "-l", "app=whole")[0]["status"]["phase"] == "Pending"
    fleet.kubectl("delete", "pod", "three", "--force")
    running(fleet, "whole")
    assert devices_of(fleet, "whole") == [("node-0", "gpu-0")]


def test_a_whole_gpu_of_dynamic_mig_is_busy_with_all_of_its_instances(fleet: E2ECluster) -> None:
    add_pool(fleet, "--mig", "dynamic", nodes=1, gpus=1)
    fleet.ghost("occupy", "node-0/gpu-0")
    apply(fleet, claim_template("small", instance("1g.10gb")), pod("small", template="small"))
    assert "cannot allocate all claims" in unschedulable(fleet, "small")
    fleet.ghost("release", "node-0/gpu-0")
    running(fleet, "small")


def test_parts_that_are_held_stay_held_unless_forced(fleet: E2ECluster) -> None:
    add_pool(fleet, "--mig", "dynamic", nodes=1, gpus=1)
    apply(fleet, claim_template("seven", instance("7g.80gb")), pod("seven", template="seven"))
    running(fleet, "seven")
    refused = fleet.ghost("occupy", "node-0/gpu-0", "--profiles", "1g.10gb", check=False)
    assert (refused.returncode, "default/seven" in refused.stderr) == (1, True)
    fleet.ghost("occupy", "node-0/gpu-0", "--profiles", "1g.10gb", "--force")
    apply(fleet, claim_template("three", instance("3g.40gb")), pod("three", template="three"))
    running(fleet, "three")


@pytest.mark.parametrize("kind", ["taint", "pods"])
def test_at_rest_nothing_is_written(fleet: E2ECluster, kind: str) -> None:
    add_pool(fleet)
    settled(fleet)
    command = ("occupy", "--pool", "node", "--free", "2,2,2,1", "--with", kind)
    fleet.ghost(*command)
    mark = audit_mark(fleet)
    again = fleet.ghost(*command)
    assert {line.rpartition(" ")[2] for line in again.stdout.splitlines()} == {"unchanged"}
    assert tool_writes(fleet, mark) == []
