"""Slices: the generation is raised when more than one changes, and a taint's time is no difference."""

import copy
from dataclasses import replace

import pytest

from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState, MigMode, NodeHardware, Occupancy
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.domain.slice_rules import slice_rules
from kubectl_ghost.manifests.node import node as node_manifest
from kubectl_ghost.manifests.resource_slice import resource_slices
from kubectl_ghost.manifests.slice_updates import slice_updates
from tests.unit.manifests.slices import devices_in

BROKEN = GpuState(faults=(Fault("xid", 79),))


def hardware(gpus=8, mig=MigMode.STATIC):
    return NodeHardware(replace(configure("node", None, PoolRequest(gpus=gpus)), mig=mig), 0)


def slices(declared, version=(1, 36)):
    return resource_slices(declared, node_manifest(declared), slice_rules(version))


def stored(items):
    """What the server makes of them: taints are dated."""
    made = copy.deepcopy(items)
    for position, item in enumerate(made):
        item["metadata"] |= {"uid": f"u{position}", "resourceVersion": "1"}
        for device in item["spec"].get("devices") or ():
            for taint in device.get("taints") or ():
                taint["timeAdded"] = "2026-01-01T00:00:00Z"
    return made


def written(wanted, live):
    updates, leftovers = slice_updates(wanted, live)
    return [update.body for update in updates if update.differs], leftovers


def generations(updates):
    return {update.body["spec"]["pool"]["generation"] for update in updates}


def test_at_rest_nothing_is_written_though_the_server_has_dated_the_taints():
    for declared in (hardware().with_gpu(1, BROKEN), hardware(mig=MigMode.DYNAMIC).with_gpu(1, BROKEN)):
        wanted = slices(declared)
        assert written(wanted, stored(wanted)) == ([], [])


def test_one_slice_that_changes_keeps_the_generation():
    live = stored(slices(hardware()))
    updates, _ = slice_updates(slices(hardware().with_gpu(1, BROKEN)), live)
    assert generations(updates) == {1}
    assert updates[0].differs


def test_a_second_taint_keeps_the_first_ones_time():
    once = hardware().with_gpu(1, BROKEN)
    live = stored(slices(once))
    (body,), _ = written(slices(once.with_gpu(2, BROKEN)), live)
    times = {device["name"]: device["taints"][0].get("timeAdded") for device in body["spec"]["devices"][1:3]}
    assert times == {"gpu-1": "2026-01-01T00:00:00Z", "gpu-2": None}


def test_under_dynamic_mig_a_gpus_fault_changes_its_own_slice_alone():
    plain = hardware(mig=MigMode.DYNAMIC)
    bodies, _ = written(slices(plain.with_gpu(3, BROKEN)), stored(slices(plain)))
    (body,) = bodies
    assert body["spec"]["pool"] == {"generation": 1, "name": "node-0", "resourceSliceCount": 9}
    assert all(device["taints"] for device in body["spec"]["devices"])


def test_a_busy_part_changes_the_counters_alone():
    plain = hardware(mig=MigMode.DYNAMIC)
    busy = plain.with_gpu(0, GpuState(occupancy=Occupancy(instances=(MigInstance("4g.40gb", 0),))))
    (body,), _ = written(slices(busy), stored(slices(plain)))
    counters = body["spec"]["sharedCounters"][0]["counters"]
    assert [counters[f"memory-slice-{index}"]["value"] for index in range(8)] == list("00001111")
    assert counters["multiprocessors"]["value"] == str(132 - 64)
    assert counters["memory"]["value"] == "40704Mi"


def test_more_slices_than_before_are_of_one_new_generation():
    many = hardware(128)
    live = stored(slices(many))
    assert len(live) == 1
    updates, leftovers = slice_updates(slices(many.with_gpu(0, BROKEN)), live)
    assert [len(update.body["spec"]["devices"]) for update in updates] == [64, 64]
    assert generations(updates) == {2}
    assert leftovers == []


def test_fewer_slices_again_leave_none_behind():
    many = hardware(128)
    live = stored(slices(many.with_gpu(0, BROKEN)))
    updates, leftovers = slice_updates(slices(many), live)
    assert generations(updates) == {2}
    assert [item["metadata"]["name"] for item in leftovers] == [live[1]["metadata"]["name"]]


@pytest.mark.parametrize("done", range(10))
def test_an_interrupted_write_goes_on_in_the_generation_that_it_had_begun(done):
    plain = hardware(mig=MigMode.DYNAMIC)
    broken = plain.with_gpu(1, BROKEN).with_gpu(2, BROKEN)
    live = stored(slices(plain))
    updates, _ = slice_updates(slices(broken), live)
    assert generations(updates) == {2}
    halfway = stored([update.body for update in updates[:done]]) + live[done:]
    again, _ = slice_updates(slices(broken), halfway)
    assert generations(again) == {2}
    assert [update.differs for update in again] == [position >= done for position in range(9)]


def test_another_declaration_over_an_interrupted_one_takes_a_generation_of_its_own():
    plain = hardware(mig=MigMode.DYNAMIC)
    updates, _ = slice_updates(slices(plain.with_gpu(1, BROKEN).with_gpu(2, BROKEN)), stored(slices(plain)))
    halfway = stored([update.body for update in updates[:3]]) + stored(slices(plain))[3:]
    again, _ = slice_updates(slices(plain), halfway)
    assert generations(again) == {3}


def test_a_slice_that_somebody_deleted_is_made_in_the_generation_of_the_others():
    wanted = slices(hardware(mig=MigMode.DYNAMIC))
    live = stored(wanted)
    updates, _ = slice_updates(wanted, live[:4] + live[5:])
    assert generations(updates) == {1}
    assert [update.live is None for update in updates].count(True) == 1


def test_labels_and_annotations_of_others_survive():
    live = stored(slices(hardware()))
    live[0]["metadata"]["labels"]["theirs"] = "1"
    live[0]["metadata"]["annotations"] = {"theirs": "1"}
    (body,), _ = written(slices(hardware().with_gpu(1, BROKEN)), live)
    assert body["metadata"]["labels"]["theirs"] == "1"
    assert body["metadata"]["annotations"] == {"theirs": "1"}
    assert body["metadata"]["resourceVersion"] == "1"


def test_kubernetes_1_34_has_counters_beside_the_devices_that_use_them():
    old = slices(hardware(mig=MigMode.DYNAMIC), (1, 34))
    assert len(old) == 8
    assert all(len(item["spec"]["sharedCounters"]) == 1 and item["spec"]["devices"] for item in old)


def test_kubernetes_1_34_knows_no_taint_without_an_effect():
    ignored = hardware().with_gpu(1, GpuState(faults=(Fault("xid", 31),)))
    assert [device.get("taints") for device in devices_in(slices(ignored, (1, 34)))][1] is None
    assert devices_in(slices(ignored))[1]["taints"] == [{"key": "gpu.nvidia.com/xid", "value": "31", "effect": "None"}]


def test_more_than_eight_gpus_have_their_counters_in_several_slices():
    many = slices(hardware(20, MigMode.DYNAMIC))
    assert [len(item["spec"].get("sharedCounters", ())) for item in many[:3]] == [8, 8, 4]
    assert {item["spec"]["pool"]["resourceSliceCount"] for item in many} == {23}
