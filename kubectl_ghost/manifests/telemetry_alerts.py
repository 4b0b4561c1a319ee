"""Alerts for the faults that show in a GPU's telemetry rather than by an XID.

Those that look at fields outside dcgm-exporter's default set are silent where the exporter does not print them.
"""

from __future__ import annotations

from kubectl_ghost.domain.alert_catalogue import limits
from kubectl_ghost.domain.fault_catalogue import fault_kind
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests.alert_rule import HELD_FIELD, alert, holders, identity, place, record
from kubectl_ghost.manifests.promql import any_of, largest, selector
from kubectl_ghost.manifests.series_labels import SeriesLabels

_SIGNS_OF_LIFE = f'{{__name__=~"{HELD_FIELD}|DCGM_FI_DEV_XID_ERRORS"}}'
"""A GPU that has fallen off the bus still has its XID."""
_BUSY_CLOCK = "gpu:sm_clock_mhz:busy5m"
_BUSY_POWER = "gpu:power_watts:busy5m"
_WINDOW = "5m"
"""Over which rates are taken: some ten samples at the exporter's usual 30 s."""


def telemetry_alerts(labels: SeriesLabels) -> list[Json]:
    """Every rule about a GPU's telemetry, in the order of the fault catalogue."""
    return [
        *_missing(labels),
        _of_gpu(labels, "GPUNVLinkErrors", "nvlink-down", "critical", _nvlink_errors(labels)),
        *_memory(labels),
        *_throttling(labels),
        *_straggling(labels),
        _of_gpu(labels, "GPUPcieReplays", "pcie", "warning", _pcie_replays(labels), wait="5m"),
    ]


def _of_gpu(labels: SeriesLabels, name: str, kind_name: str, severity: str, expression: str, wait: str = "") -> Json:
    """An alert about a kind of fault of whole GPUs."""
    kind = fault_kind(kind_name)
    annotations = {
        "summary": f"{place(labels)}: {kind.description}",
        "description": f"{identity(labels)}.",
        "pods": holders(labels, limits().passing_minutes, whole=True),
    }
    return alert(name, expression, severity, annotations, recovery=kind.recovery, wait=wait)


def _missing(labels: SeriesLabels) -> list[Json]:
    """GPUs that were there and are not; where all of a node's are gone, the node is what the alert is about."""
    hours = limits()
    seen = largest(labels.of_gpu, f"last_over_time({HELD_FIELD}[{hours.lost_within_hours}h])")
    lost = f"({seen}\nunless on ({labels.uuid}) {HELD_FIELD})\nand on ({labels.node}) {_SIGNS_OF_LIFE}"
    heard = largest([labels.node], f"last_over_time({HELD_FIELD}[{hours.silent_within_hours}h])")
    silent = f"{heard}\nunless on ({labels.node}) {_SIGNS_OF_LIFE}"
    annotations = {
        "summary": f"No GPU of {{{{ $labels.{labels.node} }}}} reports any more",
        "description": "The node is switched off or cut off, its NVIDIA driver has stopped, or it has been taken away.",
    }
    reboot = fault_kind("driver-crash").recovery
    return [
        _of_gpu(labels, "GPULost", "gpu-lost", "critical", lost, wait="1m"),
        alert("GPUNodeSilent", silent, "critical", annotations, recovery=reboot, wait="2m"),
    ]


def _nvlink_errors(labels: SeriesLabels) -> str:
    """As DCGM's own health check: a replay or recovery is one too many, CRC errors from a rate on."""
    rate = limits().nvlink_crc_errors_per_second
    crc = [f"rate(DCGM_FI_DEV_NVLINK_CRC_{part}_ERROR_COUNT_TOTAL[{_WINDOW}]) >= {rate}" for part in ("FLIT", "DATA")]
    minutes = limits().passing_minutes
    rare = [f"increase(DCGM_FI_DEV_NVLINK_{part}_ERROR_COUNT_TOTAL[{minutes}m]) > 0" for part in ("REPLAY", "RECOVERY")]
    return any_of(*(largest(labels.of_gpu, expression) for expression in (*crc, *rare)))


def _memory(labels: SeriesLabels) -> list[Json]:
    remapped = "increase(DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS[1h]) > 0"
    return [
        _of_gpu(labels, name, kind, severity, largest(labels.of_gpu, expression))
        for name, kind, severity, expression in (
            ("GPUSingleBitErrors", "ecc-correctable", "info", "increase(DCGM_FI_DEV_ECC_SBE_VOL_TOTAL[1h]) > 0"),
            # Volatile: the count begins anew with the reset that is the cure.
            ("GPUDoubleBitError", "ecc-uncorrectable", "critical", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL > 0"),
            ("GPURowRemapPending", "row-remap-pending", "warning", remapped),
            ("GPURowRemapFailure", "row-remap-failure", "critical", "DCGM_FI_DEV_ROW_REMAP_FAILURE > 0"),
        )
    ]


def _throttling(labels: SeriesLabels) -> list[Json]:
    """By the time that clocks were lowered or by dcgm-exporter's count of the reasons, whichever is printed."""
    found = []
    for name, kind, field, share, events in (
        ("GPUThermalThrottling", "thermal", "THERMAL", limits().thermal_share, "sw_thermal|hw_thermal"),
        # Not power_cap: a GPU at its own limit is at work.
        ("GPUPowerThrottling", "power", "POWER", limits().power_share, "hw_power_brake"),
    ):
        counted = selector("DCGM_EXP_CLOCK_EVENTS_COUNT", f'clock_event=~"{events}"')
        expression = any_of(
            largest(labels.of_gpu, f"rate(DCGM_FI_DEV_{field}_VIOLATION[{_WINDOW}])") + f" / 1e9 > {share}",
            largest(labels.of_gpu, f"{counted} > 0"),
        )
        found.append(_of_gpu(labels, name, kind, "warning", expression, wait="5m"))
    return found


def _straggling(labels: SeriesLabels) -> list[Json]:
    """Busy GPUs whose SM clock and power are both below those of their model's other busy GPUs.

    Power alone differs between workloads, and a GPU at its power limit lowers its clock: a slow one is low in both.
    """
    figures = limits()
    busy = largest([labels.uuid], f"avg_over_time(DCGM_FI_DEV_GPU_UTIL[{_WINDOW}])") + f" >= {figures.busy_percent}"
    records = [
        record(name, largest(labels.of_gpu, f"avg_over_time({field}[{_WINDOW}])") + f"\nand on ({labels.uuid}) {busy}")
        for name, field in ((_BUSY_CLOCK, "DCGM_FI_DEV_SM_CLOCK"), (_BUSY_POWER, "DCGM_FI_DEV_POWER_USAGE"))
    ]
    clock, power = (
        f"{name} < on ({labels.model}) group_left () "
        f"{figures.straggler_share} * quantile by ({labels.model}) (0.5, {name})"
        for name in (_BUSY_CLOCK, _BUSY_POWER)
    )
    peers = f"count by ({labels.model}) ({_BUSY_CLOCK}) >= {figures.straggler_peers}"
    slow = f"{clock}\nand on ({labels.uuid}) {power}\nand on ({labels.model}) {peers}"
    return [*records, _of_gpu(labels, "GPUStraggler", "slow", "warning", slow, wait="10m")]


def _pcie_replays(labels: SeriesLabels) -> str:
    rate = largest(labels.of_gpu, f"rate(DCGM_FI_DEV_PCIE_REPLAY_COUNTER[{_WINDOW}])")
    return f"{rate} * 60 > {limits().pcie_replays_per_minute}"
