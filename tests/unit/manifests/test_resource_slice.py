"""ResourceSlices: NVIDIA's names and attributes, within the API's limits, for every model."""

import json
import re
from pathlib import Path

import pytest

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.hardware import Advertise, NodeHardware
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.manifests.device_class import gpu_device_class, mig_device_class
from kubectl_ghost.manifests.devices import semantic_version
from kubectl_ghost.manifests.resource_slice import resource_slices

ORACLE = json.loads((Path(__file__).parents[2] / "data" / "oracle" / "dra-h100-plain.json").read_text())[0]
OWNER = {"metadata": {"uid": "u-1"}}


def slices(model="h100", advertise=Advertise.BOTH, **request):
    settings = configure("node", None, PoolRequest(model=model, advertise=advertise, **request))
    return resource_slices(NodeHardware(settings, 3), OWNER)


def test_the_shape_is_that_of_nvidias_driver():
    (made,) = slices()
    recorded, ours = ORACLE["spec"]["devices"][0], made["spec"]["devices"][0]
    # The recording was made where the driver could not see PCIe roots and the addressing mode.
    unseen = {"resource.kubernetes.io/pcieRoot", "addressingMode"}
    assert set(ours["attributes"]) == set(recorded["attributes"]) | unseen
    assert {key: list(value) for key, value in recorded["attributes"].items()} == {
        key: list(value) for key, value in ours["attributes"].items() if key not in unseen
    }
    for same in ("productName", "architecture", "brand", "cudaComputeCapability", "type"):
        assert ours["attributes"][same] == recorded["attributes"][same]
    assert ours["name"] == recorded["name"] == "gpu-0"
    assert set(ours["capacity"]) == set(recorded["capacity"])
    assert set(made["spec"]) == set(ORACLE["spec"])
    (owner,), (recorded_owner,) = made["metadata"]["ownerReferences"], ORACLE["metadata"]["ownerReferences"]
    assert {**owner, "name": "", "uid": ""} == {**recorded_owner, "name": "", "uid": ""}
    pattern = re.sub("real-dra-.....$", "node-3-.....", ORACLE["metadata"]["name"])
    assert re.fullmatch(pattern, made["metadata"]["name"])


@pytest.mark.parametrize("key", model_keys())
@pytest.mark.parametrize("gpus", [None, 1, 128])
def test_every_model_is_within_the_limits_of_the_api(key, gpus):
    (made,) = slices(key, gpus=gpus)
    devices = made["spec"]["devices"]
    assert len(devices) <= 128
    assert len({device["name"] for device in devices}) == len(devices)
    for device in devices:
        assert len(device["attributes"]) + len(device["capacity"]) <= 32
        for name, value in device["attributes"].items():
            assert len(name.rpartition("/")[2]) <= 32
            (text,) = value.values()
            assert 0 < len(text) <= 64
            if "version" in value:
                assert re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", text)


def test_pool_and_owner():
    (made,) = slices()
    assert made["spec"]["pool"] == {"generation": 1, "name": "node-3", "resourceSliceCount": 1}
    assert made["spec"]["nodeName"] == "node-3"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u-1"


def test_memory_is_what_nvml_reports():
    (made,) = slices()
    assert made["spec"]["devices"][0]["capacity"] == {"memory": {"value": "81559Mi"}}


def test_an_addressing_mode_that_no_source_gives_is_left_out():
    (made,) = slices("l4")
    assert "addressingMode" not in made["spec"]["devices"][0]["attributes"]


def test_a_device_plugin_pool_publishes_none():
    assert slices(advertise=Advertise.DEVICE_PLUGIN) == []
    assert len(slices(advertise=Advertise.DRA)) == 1


def test_leading_zeros_are_dropped():
    assert semantic_version("580.105.08") == "580.105.8"


def test_device_classes_have_nvidias_own_expressions():
    (selector,) = gpu_device_class(extended_resource=False)["spec"]["selectors"]
    assert selector["cel"]["expression"] == (
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    )
    (selector,) = mig_device_class()["spec"]["selectors"]
    assert selector["cel"]["expression"].endswith(".type == 'mig'")


def test_the_class_serves_nvidia_gpu_only_when_asked():
    assert gpu_device_class(extended_resource=True)["spec"]["extendedResourceName"] == "nvidia.com/gpu"
    assert "extendedResourceName" not in gpu_device_class(extended_resource=False)["spec"]
