"""Series in promtool's notation, as dcgm-exporter would print them for a small fleet over two hours, one a minute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

BROKEN_AT = 60
"""The minute in which something breaks."""
LAST = 120
MODEL = "NVIDIA H100 80GB HBM3"
Series = list[dict[str, str]]


def steady(value: float) -> str:
    """The same value all the time."""
    return f"{value}x{LAST}"


def becomes(before: float, after: str | float) -> str:
    """One value until something breaks, then another; or a count that rises, `0+60`."""
    return f"{before}x{BROKEN_AT - 1} {after}x{LAST - BROKEN_AT}"


def ends(value: float) -> str:
    """A series that is no longer printed once something breaks."""
    return f"{value}x{BROKEN_AT - 1} stale"


def begins(value: float) -> str:
    """A series that is printed only once something breaks."""
    return f"_x{BROKEN_AT} {value}x{LAST - BROKEN_AT}"


HEALTHY = {
    "DCGM_FI_DEV_SM_CLOCK": steady(1980),
    "DCGM_FI_DEV_GPU_TEMP": steady(60),
    "DCGM_FI_DEV_POWER_USAGE": steady(600),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": steady(0),
    "DCGM_FI_DEV_GPU_UTIL": steady(95),
    "DCGM_FI_DEV_POWER_VIOLATION": steady(0),
    "DCGM_FI_DEV_THERMAL_VIOLATION": steady(0),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": steady(0),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": steady(0),
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": steady(0),
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": steady(0),
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": steady(0),
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": steady(0),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": steady(0),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": steady(0),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": steady(0),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": steady(0.95),
}
"""A GPU at work."""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU or a MIG instance, who holds it, and in what its series differ from those of a healthy one."""

    node: str
    gpu: int
    pod: str = ""
    instance: tuple[str, str] | None = None
    xid: Mapping[int, str] = field(default_factory=lambda: {0: steady(0)})
    changes: Mapping[str, str] = field(default_factory=dict)

    @property
    def gpu_labels(self) -> dict[str, str]:
        """What an alert about the GPU has."""
        return {
            "gpu": str(self.gpu),
            "UUID": f"GPU-{self.node}-{self.gpu}",
            "pci_bus_id": f"00000000:{self.gpu:02X}:00.0",
            "modelName": MODEL,
            "Hostname": self.node,
        }

    @property
    def device_labels(self) -> dict[str, str]:
        """What an alert about just this device has."""
        mig = {} if self.instance is None else dict(zip(("GPU_I_PROFILE", "GPU_I_ID"), self.instance, strict=True))
        return self.gpu_labels | mig

    @property
    def holder_labels(self) -> dict[str, str]:
        """What is there only while a pod holds it."""
        return {"container": "main", "namespace": "ml", "pod": self.pod} if self.pod else {}

    def series(self) -> Series:
        """Every series of the device."""
        labels = {**self.device_labels, "device": f"nvidia{self.gpu}", **self.holder_labels}
        fields = HEALTHY | dict(self.changes)
        if self.instance is not None:
            del fields["DCGM_FI_DEV_GPU_UTIL"]
        found = [_series(name, labels, values) for name, values in fields.items()]
        for code, values in self.xid.items():
            error = {"err_code": str(code), "err_msg": f"Message {code}"}
            found.append(_series("DCGM_FI_DEV_XID_ERRORS", labels | error, values))
        return found

    def but(self, **changes: str) -> Device:
        """The same with other series: the end of each name says which."""
        full = {name: next(known for known in HEALTHY if known.endswith(name)) for name in changes}
        return replace(self, changes={**self.changes, **{full[name]: values for name, values in changes.items()}})

    def reporting(self, code: int) -> Device:
        """The same with an XID, which the exporter keeps showing."""
        return replace(self, xid={0: ends(0), code: begins(code)})

    def without(self, *, xid: bool = True) -> Device:
        """The same with no series any more, but for that of XIDs if it is to stay."""
        changes = {name: f"{values.split('x')[0]}x{BROKEN_AT - 1} stale" for name, values in HEALTHY.items()}
        return replace(self, changes=changes, xid={0: ends(0)} if xid else self.xid)


def _series(name: str, labels: Mapping[str, str], values: str) -> dict[str, str]:
    return {"series": metric(name, labels), "values": values}


def metric(name: str, labels: Mapping[str, str]) -> str:
    """`NAME{a="b"}`."""
    inside = ", ".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{name}{{{inside}}}"


def fleet() -> dict[str, Device]:
    """Two nodes of healthy GPUs: four held ones, one that is free, and one in MIG mode with a held and a free instance.

    Returns:
        Each device by a name that says where it is: `node-1/4/7` is an instance.
    """
    devices = [Device(node, gpu, pod=f"train-{node}-{gpu}") for node in ("node-0", "node-1") for gpu in range(3)]
    idle = {"SM_CLOCK": steady(345), "POWER_USAGE": steady(70), "GPU_UTIL": steady(0)}
    devices.append(Device("node-0", 3).but(**idle))
    devices += [
        Device("node-1", 4, pod="infer", instance=("1g.10gb", "7")),
        Device("node-1", 4, instance=("3g.40gb", "2")),
    ]
    names = (f"{one.node}/{one.gpu}" + (f"/{one.instance[1]}" if one.instance else "") for one in devices)
    return dict(zip(names, devices, strict=True))


def all_series(devices: Iterable[Device]) -> Series:
    """The series of all of them."""
    return [series for device in devices for series in device.series()]
