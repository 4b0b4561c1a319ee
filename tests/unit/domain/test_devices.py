"""Devices: what NVIDIA's driver publishes and what its device plugin counts, whole, split, shared and broken."""

from dataclasses import replace

import pytest

from kubectl_ghost.domain.devices import Offer, dra_devices, offers, single_profile
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import (
    Advertise,
    GpuState,
    MigMode,
    MigStrategy,
    NodeHardware,
    Occupancy,
    OccupancyKind,
    Sharing,
    SharingKind,
)
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.pools import PoolRequest, configure

SEVEN = tuple(MigInstance("1g.10gb", start) for start in range(7))
MIXED = (MigInstance("3g.40gb", 4), MigInstance("2g.20gb", 2), MigInstance("1g.10gb", 0))


def node(gpus=2, model="h100", **settings):
    base = configure("node", None, PoolRequest(model=model, gpus=gpus))
    return NodeHardware(replace(base, **settings), 0)


def split(hardware, layouts):
    for index, layout in layouts.items():
        hardware = hardware.with_gpu(index, replace(hardware.gpu(index), mig=layout))
    return hardware


def counts(hardware):
    return {name: (len(offer.devices), len(offer.available)) for name, offer in offers(hardware).items()}


def names(hardware):
    return [device.name for device in dra_devices(hardware)]


def test_a_split_gpu_disappears_and_its_instances_appear():
    assert names(split(node(), {1: MIXED})) == [
        "gpu-0",
        "gpu-1-mig-3g40gb-9-4",
        "gpu-1-mig-2g20gb-14-2",
        "gpu-1-mig-1g10gb-19-0",
    ]


def test_in_mig_mode_without_instances_there_is_nothing():
    assert names(split(node(), {0: ()})) == ["gpu-1"]
    assert counts(split(node(), {0: ()})) == {"nvidia.com/gpu": (1, 1)}


def test_dynamic_mig_offers_the_whole_and_every_part():
    hopper, ampere = node(1, mig=MigMode.DYNAMIC), node(1, "a100", mig=MigMode.DYNAMIC)
    assert len(names(hopper)) == 26
    assert names(hopper)[0] == "gpu-0"
    assert "gpu-0" not in names(ampere)
    assert len(names(ampere)) == 25


def test_the_mixed_strategy_counts_each_profile_by_its_own_name():
    hardware = split(node(), {0: MIXED, 1: SEVEN})
    assert counts(hardware) == {
        "nvidia.com/gpu": (0, 0),
        "nvidia.com/mig-3g.40gb": (1, 1),
        "nvidia.com/mig-2g.20gb": (1, 1),
        "nvidia.com/mig-1g.10gb": (8, 8),
    }


def test_a_media_profile_has_a_dot_in_its_resource():
    assert "nvidia.com/mig-1g.10gb.me" in counts(split(node(), {0: (MigInstance("1g.10gb+me", 0),)}))


def test_the_single_strategy_counts_instances_as_gpus():
    single = node(mig_strategy=MigStrategy.SINGLE)
    assert counts(single) == {"nvidia.com/gpu": (2, 2)}
    assert counts(split(single, {0: SEVEN, 1: SEVEN})) == {"nvidia.com/gpu": (14, 14)}


@pytest.mark.parametrize("layouts", [{0: SEVEN}, {0: SEVEN, 1: ()}, {0: SEVEN, 1: MIXED}, {0: MIXED, 1: MIXED}])
def test_the_single_strategy_offers_nothing_of_an_invalid_layout(layouts):
    hardware = split(node(mig_strategy=MigStrategy.SINGLE), layouts)
    assert single_profile(hardware) is None
    assert counts(hardware) == {"nvidia.com/gpu": (0, 0)}


def test_the_strategy_none_does_not_look_at_instances():
    assert counts(split(node(mig_strategy=MigStrategy.NONE), {0: SEVEN})) == {"nvidia.com/gpu": (2, 2)}


def test_shares_are_dealt_out_over_the_gpus():
    shared = node(sharing=Sharing(SharingKind.TIME_SLICING, 2))
    shares = ("gpu-0::0", "gpu-1::0", "gpu-0::1", "gpu-1::1")
    assert offers(shared) == {"nvidia.com/gpu": Offer(shares, shares)}
    renamed = node(sharing=Sharing(SharingKind.MPS, 2, renamed=True))
    assert list(offers(renamed)) == ["nvidia.com/gpu.shared"]


def test_only_whole_gpus_are_shared():
    hardware = split(node(sharing=Sharing(SharingKind.TIME_SLICING, 4)), {0: SEVEN})
    assert counts(hardware) == {"nvidia.com/gpu": (4, 4), "nvidia.com/mig-1g.10gb": (7, 7)}


def test_what_is_broken_or_busy_is_counted_but_not_available():
    broken = node().with_gpu(0, GpuState(faults=(Fault("xid", 79),)))
    assert offers(broken) == {"nvidia.com/gpu": Offer(("gpu-0", "gpu-1"), ("gpu-1",))}
    busy = node().with_gpu(1, GpuState(occupancy=Occupancy()))
    assert offers(busy) == {"nvidia.com/gpu": Offer(("gpu-0", "gpu-1"), ("gpu-0",))}


def test_a_gpu_that_a_filler_pod_is_to_hold_is_available_to_it():
    filled = node(advertise=Advertise.DEVICE_PLUGIN).with_gpu(1, GpuState(occupancy=Occupancy(OccupancyKind.PODS)))
    assert counts(filled) == {"nvidia.com/gpu": (2, 2)}


def test_a_broken_gpu_takes_its_instances_and_shares_with_it():
    hardware = split(node(sharing=Sharing(SharingKind.TIME_SLICING, 4)), {0: SEVEN})
    for index in (0, 1):
        hardware = hardware.with_gpu(index, replace(hardware.gpu(index), faults=(Fault("xid", 79),)))
    assert counts(hardware) == {"nvidia.com/gpu": (4, 0), "nvidia.com/mig-1g.10gb": (7, 0)}


def test_each_way_is_offered_only_where_it_is_advertised():
    assert offers(node(advertise=Advertise.DRA)) == {}
    assert names(node(advertise=Advertise.DEVICE_PLUGIN)) == []
