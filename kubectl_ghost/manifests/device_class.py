"""The DeviceClasses of NVIDIA's DRA driver, with its own CEL expressions."""

from __future__ import annotations

from typing import Any

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.keys import Json


def gpu_device_class(*, extended_resource: bool) -> Json:
    """`gpu.nvidia.com`: every whole GPU.

    Args:
        extended_resource: whether pods that ask for `nvidia.com/gpu` are served through this class. It is cluster-wide,
            so only while pools of `--advertise dra` exist.
    """
    return _device_class(keys.GPU_DEVICE_CLASS, "gpu", keys.GPU_RESOURCE if extended_resource else None)


def mig_device_class() -> Json:
    """`mig.nvidia.com`: every MIG device."""
    return _device_class(keys.MIG_DEVICE_CLASS, "mig", None)


def _device_class(name: str, device_type: str, extended_resource: str | None) -> Json:
    expression = (
        f"device.driver == '{keys.GPU_DRIVER}' && device.attributes['{keys.GPU_DRIVER}'].type == '{device_type}'"
    )
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": expression}}]}
    if extended_resource:
        spec["extendedResourceName"] = extended_resource
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name, "labels": {keys.MANAGED_BY_LABEL: keys.MANAGED_BY}},
        "spec": spec,
    }
