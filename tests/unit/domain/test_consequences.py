"""Consequences: several faults of one node come to one taint a key, one condition a type, and nobody is forgotten."""

from dataclasses import replace

from kubectl_ghost.domain.consequences import consequences, remembering_conditions
from kubectl_ghost.domain.faults import Effect, Fault, Reactor
from kubectl_ghost.domain.hardware import Advertise, GpuState, NodeHardware, Occupancy, OccupancyKind
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.pools import PoolRequest, configure

NODE = NodeHardware(configure("node", None, PoolRequest()), 0)
XID = Fault("xid", 79)


def broken(*faults, index=2):
    return NODE.with_gpu(index, GpuState(faults=faults))


def taints(hardware, index=2):
    return [(taint.key, taint.value, taint.effect) for taint in consequences(hardware).taints.get(index, ())]


def test_a_new_node_has_none():
    found = consequences(NODE)
    assert (found.taints, found.unavailable, found.conditions, found.labels, found.cordon) == ({}, set(), (), (), False)


def test_a_fault_concerns_its_gpu_alone():
    found = consequences(broken(XID))
    assert set(found.taints) == {2}
    assert found.unavailable == {2}


def test_two_faults_on_one_node_are_both_there():
    hardware = broken(XID).with_gpu(5, GpuState(faults=(Fault("gpu-lost"),)))
    assert set(consequences(hardware).taints) == {2, 5}


def test_of_one_key_the_stronger_effect_stands_then_the_later():
    assert taints(broken(XID, Fault("xid", 31))) == [("gpu.nvidia.com/xid", "79", Effect.NO_EXECUTE)]
    assert taints(broken(Fault("xid", 31), XID)) == [("gpu.nvidia.com/xid", "79", Effect.NO_EXECUTE)]
    assert taints(broken(XID, Fault("xid", 48))) == [("gpu.nvidia.com/xid", "48", Effect.NO_EXECUTE)]


def test_an_xid_beside_a_lost_gpu_are_two_keys():
    assert {key for key, _, _ in taints(broken(XID, Fault("gpu-lost")))} == {
        "gpu.nvidia.com/xid",
        "gpu.nvidia.com/gpu-lost",
    }


def test_what_cannot_be_told_apart_strikes_every_gpu():
    lost = Fault("gpu-lost", reactors=(Reactor.DRA, Reactor.DEVICE_PLUGIN))
    assert set(consequences(broken(lost)).taints) == set(range(8))
    assert consequences(broken(lost)).unavailable == set(range(8))
    crashed = replace(NODE, faults=(Fault("driver-crash"),))
    assert set(consequences(crashed).taints) == set(range(8))


def test_conditions_of_one_type_are_merged():
    faults = (Fault("xid", 79, (Reactor.EKS,)), Fault("xid", 48, (Reactor.EKS,)))
    (condition,) = consequences(broken(*faults)).conditions
    assert condition.reason == "NvidiaXID79Error"
    assert "79" in condition.message
    assert "48" in condition.message


def test_occupancy_taints_and_makes_unavailable():
    busy = NODE.with_gpu(0, GpuState(occupancy=Occupancy()))
    assert taints(busy, 0) == [("kubectl-ghost.dev/occupied", "true", Effect.NO_SCHEDULE)]
    assert consequences(busy).unavailable == {0}


def test_a_part_that_is_busy_taints_nothing():
    part = Occupancy(instances=(MigInstance("1g.10gb", 0),))
    busy = NODE.with_gpu(0, GpuState(occupancy=part))
    assert taints(busy, 0) == []
    assert consequences(busy).unavailable == {0}


def test_pods_that_hold_a_gpu_need_no_taint():
    filled = NODE.with_gpu(0, GpuState(occupancy=Occupancy(OccupancyKind.PODS)))
    assert consequences(filled).taints == {}


def test_a_gpu_that_a_pod_holds_by_claim_is_not_counted_for_others():
    filled = NODE.with_gpu(0, GpuState(occupancy=Occupancy(OccupancyKind.PODS)))
    assert consequences(filled).unavailable == {0}
    counted = replace(filled, settings=replace(filled.settings, advertise=Advertise.DEVICE_PLUGIN))
    assert consequences(counted).unavailable == set()


def test_types_of_conditions_are_remembered_after_the_fault():
    hardware = remembering_conditions(broken(Fault("xid", 79, (Reactor.EKS,))))
    assert hardware.conditions == ("AcceleratedHardwareReady",)
    cleared = remembering_conditions(hardware.with_gpu(2, GpuState()))
    assert cleared.conditions == ("AcceleratedHardwareReady",)
    assert consequences(cleared).conditions == ()
