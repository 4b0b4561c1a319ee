"""MIG devices in ResourceSlices: NVIDIA's names, attributes and capacities, and counters that exclude what overlaps."""

from itertools import combinations

import pytest

from kubectl_ghost.domain.catalogue import model, model_keys
from kubectl_ghost.domain.devices import table_of
from kubectl_ghost.domain.hardware import Advertise, MigMode, NodeHardware
from kubectl_ghost.domain.mig import mig_table
from kubectl_ghost.domain.mig_placement import layouts
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.domain.quantity import parse_quantity
from kubectl_ghost.domain.slice_rules import slice_rules
from kubectl_ghost.domain.splitting import SplitRequest, split_as_asked
from kubectl_ghost.manifests.resource_slice import resource_slices
from tests.unit.manifests.slices import devices_in

MIG_MODELS = [key for key in model_keys() if mig_table(key) is not None]
OWNER = {"metadata": {"uid": "u-1"}}


def hardware(model_key="h100", gpus=2, **request):
    return NodeHardware(configure("node", None, PoolRequest(model=model_key, gpus=gpus, **request)), 0)


def static(profiles, gpus=(0,)):
    return resource_slices(split_as_asked(hardware(), gpus, SplitRequest(profiles=profiles)), OWNER)


def dynamic(model_key="h100", gpus=2, version=(1, 36)):
    return resource_slices(hardware(model_key, gpus, mig=MigMode.DYNAMIC), OWNER, slice_rules(version))


def test_the_gpu_goes_and_its_instances_come_in_one_slice():
    (made,) = static("3g.40gb,2g.20gb,1g.10gb*2")
    assert [device["name"] for device in made["spec"]["devices"]] == [
        "gpu-0-mig-1g10gb-19-0",
        "gpu-0-mig-1g10gb-19-1",
        "gpu-0-mig-2g20gb-14-2",
        "gpu-0-mig-3g40gb-9-4",
        "gpu-1",
    ]


def test_mig_mode_without_instances_publishes_nothing_of_that_gpu():
    (made,) = resource_slices(split_as_asked(hardware(gpus=1), (0,), SplitRequest(config="all-enabled")), OWNER)
    assert made["spec"]["devices"] == []


def test_a_static_instance_as_the_driver_describes_it():
    gpu = devices_in(resource_slices(hardware(), OWNER))[0]
    device = devices_in(static("2g.20gb:2"))[0]
    shared = {key: value for key, value in gpu["attributes"].items() if key not in ("type", "uuid")}
    assert device["attributes"] == {
        **shared,
        "type": {"string": "mig"},
        "profile": {"string": "2g.20gb"},
        "parentUUID": gpu["attributes"]["uuid"],
        "uuid": device["attributes"]["uuid"],
    }
    assert device["attributes"]["uuid"]["string"].startswith("MIG-")
    assert {key: value["value"] for key, value in device["capacity"].items()} == {
        "multiprocessors": "32",
        "copyEngines": "2",
        "decoders": "2",
        "encoders": "0",
        "jpegEngines": "2",
        "ofaEngines": "0",
        "memory": "20096Mi",
        "memorySlice2": "1",
        "memorySlice3": "1",
    }
    assert "consumesCounters" not in device


def test_instances_have_uuids_of_their_own():
    devices = devices_in(static("1g.10gb*7", gpus=(0, 1)))
    assert len({device["attributes"]["uuid"]["string"] for device in devices}) == 14


def test_no_slice_where_gpus_are_only_counted():
    counted = hardware(advertise=Advertise.DEVICE_PLUGIN)
    assert resource_slices(split_as_asked(counted, (0,), SplitRequest(profiles="1g.10gb")), OWNER) == []


def test_dynamic_every_profile_at_every_place_and_the_whole_gpu():
    counters, first, second = dynamic()
    assert [item["name"] for item in counters["spec"]["sharedCounters"]] == ["gpu-0-counter-set", "gpu-1-counter-set"]
    assert "devices" not in counters["spec"]
    names = [device["name"] for device in first["spec"]["devices"]]
    # 25 places of the seven profiles on an H100, and the GPU itself: as many as NVIDIA's driver publishes.
    assert len(names) == len(set(names)) == 26
    assert names[0] == "gpu-0"
    assert {"gpu-0-mig-7g80gb-0-0", "gpu-0-mig-1g10gb-me-20-6", "gpu-0-mig-1g20gb-15-6"} <= set(names)
    assert second["spec"]["devices"][0]["name"] == "gpu-1"


def test_dynamic_an_instance_that_does_not_exist_yet_has_no_uuid_but_one_of_our_domain():
    device = dynamic()[1]["spec"]["devices"][1]
    assert "uuid" not in device["attributes"]
    assert device["attributes"]["kubectl-ghost.dev/uuid"]["string"].startswith("MIG-")
    assert not [key for key in device["capacity"] if key.startswith("memorySlice")]


def test_dynamic_what_an_instance_and_the_whole_gpu_take():
    counters, first, _ = dynamic()
    (total, _) = counters["spec"]["sharedCounters"]
    assert total["counters"] == {
        "multiprocessors": {"value": "132"},
        "copy-engines": {"value": "8"},
        "decoders": {"value": "7"},
        "encoders": {"value": "0"},
        "jpeg-engines": {"value": "7"},
        "ofa-engines": {"value": "1"},
        "memory": {"value": "81152Mi"},
        **{f"memory-slice-{index}": {"value": "1"} for index in range(8)},
    }
    devices = {device["name"]: device["consumesCounters"] for device in first["spec"]["devices"]}
    assert devices["gpu-0"] == [{"counterSet": "gpu-0-counter-set", "counters": total["counters"]}]
    assert devices["gpu-0-mig-1g20gb-15-6"] == [
        {
            "counterSet": "gpu-0-counter-set",
            "counters": {
                "multiprocessors": {"value": "26"},
                "copy-engines": {"value": "1"},
                "decoders": {"value": "1"},
                "encoders": {"value": "0"},
                "jpeg-engines": {"value": "1"},
                "ofa-engines": {"value": "0"},
                "memory": {"value": "20096Mi"},
                "memory-slice-6": {"value": "1"},
                "memory-slice-7": {"value": "1"},
            },
        }
    ]


def test_dynamic_kubernetes_1_34_wants_counters_beside_devices():
    made = dynamic(version=(1, 34))
    assert [set(item["spec"]) & {"sharedCounters", "devices"} for item in made] == [{"sharedCounters", "devices"}] * 2


def test_an_ampere_gpu_is_not_offered_whole_beside_its_parts():
    names = [device["name"] for device in devices_in(dynamic("a100", gpus=1))]
    assert names
    assert all("-mig-" in name for name in names)


def fits(total, taken):
    """As the scheduler counts: every counter for itself."""
    left = {name: parse_quantity(value["value"]) for name, value in total.items()}
    for counters in taken:
        for name, value in counters.items():
            left[name] -= parse_quantity(value["value"])
    return all(amount >= 0 for amount in left.values())


@pytest.mark.parametrize("key", MIG_MODELS)
def test_of_two_instances_the_counters_let_coexist_what_the_table_does(key):
    counters, slice_ = dynamic(key, gpus=1)
    (total,) = counters["spec"]["sharedCounters"]
    taken = {
        device["name"]: device["consumesCounters"][0]["counters"]
        for device in slice_["spec"]["devices"]
        if device["attributes"]["type"]["string"] == "mig"
    }
    by_name = dict(zip(taken, [(p, s) for p in table_of(key).profiles for s in p.starts], strict=True))
    legal = {frozenset(map(str, layout)) for layout in layouts(table_of(key)) if len(layout) == 2}
    for one, other in combinations(taken, 2):
        (first, start), (second, place) = by_name[one], by_name[other]
        pair = frozenset((f"{first.name}:{start}", f"{second.name}:{place}"))
        assert fits(total["counters"], [taken[one], taken[other]]) == (pair in legal), pair


@pytest.mark.parametrize("key", MIG_MODELS)
@pytest.mark.parametrize("version", [(1, 34), (1, 36)])
def test_every_model_is_within_the_limits_of_the_api(key, version):
    made = dynamic(key, gpus=8, version=version)
    for item in made:
        spec = item["spec"]
        assert len(spec.get("devices", ())) <= 64
        assert len(spec.get("sharedCounters", ())) <= 8
        assert all(len(counters["counters"]) <= 32 for counters in spec.get("sharedCounters", ()))
        if version >= (1, 35):
            assert len({"devices", "sharedCounters"} & set(spec)) == 1
        for device in spec.get("devices", ()):
            assert len(device["name"]) <= 63
            assert len(device["attributes"]) + len(device["capacity"]) <= 32
        used = sum(len(device["consumesCounters"][0]["counters"]) for device in spec.get("devices", ()))
        assert used <= 1024
    devices = devices_in(made)
    assert len({device["name"] for device in devices}) == len(devices)
    whole = [device for device in devices if "-mig-" not in device["name"]]
    assert len(whole) == (0 if model(key).architecture == "Ampere" else 8)


@pytest.mark.parametrize("key", ["b300", "gb300"])
def test_figures_without_a_source_are_neither_shown_nor_counted(key):
    counters, slice_ = dynamic(key, gpus=1)
    names = set(counters["spec"]["sharedCounters"][0]["counters"])
    assert names == {"encoders", "ofa-engines", *(f"memory-slice-{index}" for index in range(8))}
    device = slice_["spec"]["devices"][-1]
    assert set(device["capacity"]) <= {"encoders", "ofaEngines", "memory"}
    assert set(device["consumesCounters"][0]["counters"]) <= names
