"""What `fault list` and `fault explain` show."""

from datetime import UTC, datetime

import pytest

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.domain.breaking import with_fault
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.fault_catalogue import codes, kinds
from kubectl_ghost.domain.faults import Effect, Fault, Reactor
from kubectl_ghost.operations.fault_views import explanation, explanations, fault_views
from kubectl_ghost.operations.inventory import read_inventory
from kubectl_ghost.operations.reconcile import update_node
from kubectl_ghost.render.fault_columns import fault_columns
from tests.unit.operations import fleet
from tests.unit.operations.memory import Memory

SINCE, UNTIL, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"


@pytest.fixture
def store():
    store = fleet.cluster(2)
    faults = [
        ([2], Fault("xid", 79, since=SINCE)),
        ([2], Fault("xid", 48, (Reactor.DRA,), Effect.NONE, SINCE, UNTIL)),
        ([], Fault("node-down", since=SINCE)),
    ]
    memory = Memory(store)
    for gpus, fault in faults:
        update_node(memory, store.one(NODES, "node-1"), lambda hardware, g=gpus, f=fault: with_fault(hardware, g, f))
    fleet.holding(store, "web", "node-1", "gpu-2")
    return store


def test_every_fault_with_who_reacts_and_who_suffers(store):
    down, memory, bus = fault_views(read_inventory(Memory(store), whole=False), SINCE)
    assert [view["metadata"]["name"] for view in (down, memory, bus)] == ["node-1", "node-1/gpu-2", "node-1/gpu-2"]
    assert (down["spec"]["kind"], down["spec"]["as"], down["status"]["taint"]) == ("node-down", [], None)
    assert memory["spec"]["as"] == ["dra"]
    assert memory["spec"]["until"] == UNTIL
    assert memory["status"]["taint"] == {"key": "gpu.nvidia.com/xid", "value": "48", "effect": "None"}
    assert bus["spec"]["as"] == ["device-plugin", "dra"]
    assert bus["status"] == {
        "fault": "XID 79",
        "taint": {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoExecute"},
        "unhealthy": True,
        "recovery": "node_power_cycle",
        "curedByReboot": True,
        "holders": ["default/web"],
        "over": False,
    }


def test_what_is_over_and_not_yet_taken_away_is_marked(store):
    views = fault_views(read_inventory(Memory(store), whole=False), LATER)
    over = {view["status"]["fault"]: view["status"]["over"] for view in views}
    assert over == {"node-down": False, "XID 48": True, "XID 79": False}
    (row,) = [view for view in views if view["status"]["over"]]
    assert fault_columns(datetime(2026, 1, 1, tzinfo=UTC))[6].value(row).endswith(" (over)")


def does(what):
    return {row["component"]: "; ".join(row["does"]) for row in explanation(what)["reactions"]}


def test_who_reacts_to_a_lost_gpu_and_how():
    assert does(79) == {
        "device-plugin": "GPU unhealthy: allocatable is lowered",
        "dra": "device taint gpu.nvidia.com/xid=79:NoSchedule",
        "eks-node-monitoring": "condition AcceleratedHardwareReady=False (NvidiaXID79Error)",
        "node-problem-detector": "condition XIDErrors=True (XID errors present in kernel log)",
        "nvsentinel": "condition SysLogsXIDError=True (SysLogsXIDErrorIsNotHealthy); cordons the node; "
        "recommends RESTART_BM",
    }


def test_an_error_of_an_application_is_ignored_by_the_device_plugin():
    assert does(13)["device-plugin"] == ""
    assert does(13)["dra"] == "device taint gpu.nvidia.com/xid=13:None"
    assert does(13)["eks-node-monitoring"] == "event NvidiaXID13Warning"
    assert explanation(13)["podExitCode"] == 139
    assert explanation(13)["byDefault"][0] == "the pod that holds the GPU fails with exit code 139"


def test_without_as_the_taint_is_stronger():
    assert explanation(79)["byDefault"] == [
        "device taint gpu.nvidia.com/xid=79:NoExecute",
        "pods are evicted",
        "allocatable is lowered",
    ]


def test_a_lost_gpu_takes_all_the_others_in_the_field():
    assert does("gpu-lost")["dra"] == "device taint gpu.nvidia.com/gpu-lost:NoSchedule on every GPU of the node"


def test_what_nvidia_advises_and_what_dcgm_says():
    view = explanation(79)
    assert view["advice"] == {
        "immediate": "RESTART_BM",
        "investigatory": "CONTACT_SUPPORT",
        "recovery": "node_power_cycle",
    }
    assert view["dcgmHealth"] == {"watch": "all", "result": "FAIL"}
    assert view["class"] == "hw_bus"


def test_everything_can_be_explained():
    views = explanations()
    assert len(views) == len(codes()) + len(kinds()) - 1
    assert all(view["description"] for view in views)


@pytest.mark.parametrize("what", [1, 999, "nope"])
def test_what_is_not_in_the_catalogue(what):
    with pytest.raises(InputError):
        explanation(what)
