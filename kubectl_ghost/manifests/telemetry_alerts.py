"""Alerts for the faults that show in a GPU's telemetry rather than by an XID.

Those that look at fields outside dcgm-exporter's default set are silent where the exporter does not print them.
"""

from __future__ import annotations

from kubectl_ghost.domain.alert_catalogue import limits, telemetry_alert
from kubectl_ghost.domain.fault_catalogue import fault_kind
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests.alert_rule import HELD_FIELD, Annotations, alert, holders, identity, place, record
from kubectl_ghost.manifests.promql import any_of, largest, selector
from kubectl_ghost.manifests.series_labels import SeriesLabels

_SIGNS_OF_LIFE = f'{{__name__=~"{HELD_FIELD}|DCGM_FI_DEV_XID_ERRORS"}}'
"""A GPU that has fallen off the bus still has its XID."""
_BUSY_CLOCK = "gpu:sm_clock_mhz:busy5m"
_BUSY_POWER = "gpu:power_watts:busy5m"


def telemetry_alerts(labels: SeriesLabels) -> list[Json]:
    """Every rule about a GPU's telemetry, in the order of the fault catalogue."""
    return [
        *_missing(labels),
        _of_gpu(labels, "GPUNVLinkErrors", _nvlink_errors(labels)),
        *_memory(labels),
        *_throttling(labels),
        *_straggling(labels),
        _of_gpu(labels, "GPUPcieReplays", _pcie_replays(labels)),
    ]


def _of_gpu(labels: SeriesLabels, name: str, expression: str) -> Json:
    """An alert about a kind of fault of whole GPUs."""
    annotations = {
        "summary": f"{place(labels)}: {fault_kind(telemetry_alert(name).kind).description}",
        "description": f"{identity(labels)}.",
        "pods": holders(labels, limits().passing_minutes, whole=True),
    }
    return _alert(name, expression, annotations)


def _alert(name: str, expression: str, annotations: Annotations) -> Json:
    row = telemetry_alert(name)
    return alert(name, expression, row.severity, annotations, recovery=fault_kind(row.kind).recovery, wait=row.wait)


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
    return [
        _of_gpu(labels, "GPULost", lost),
        _alert("GPUNodeSilent", silent, annotations),
    ]


def _risen(labels: SeriesLabels, field: str, minutes: int) -> str:
    """GPUs of which a count has risen in so many minutes.

    Not `increase`, which sees nothing where a pod goes with the very error: its labels go, too, and the series without
    them begins with the new count.
    """
    least = f"min by ({', '.join(labels.of_gpu)}) (min_over_time({field}[{minutes}m]))"
    return f"{largest(labels.of_gpu, field)} - {least} > 0"


def _nvlink_errors(labels: SeriesLabels) -> str:
    """As DCGM's own health check: a replay or recovery is one too many, CRC errors from a rate on."""
    figures = limits()
    most, window = figures.nvlink_crc_errors_per_second, _rate_window()
    crc = [f"rate(DCGM_FI_DEV_NVLINK_CRC_{part}_ERROR_COUNT_TOTAL[{window}]) >= {most}" for part in ("FLIT", "DATA")]
    return any_of(
        *(largest(labels.of_gpu, expression) for expression in crc),
        *(
            _risen(labels, f"DCGM_FI_DEV_NVLINK_{part}_ERROR_COUNT_TOTAL", figures.passing_minutes)
            for part in ("REPLAY", "RECOVERY")
        ),
    )


def _memory(labels: SeriesLabels) -> list[Json]:
    # Volatile counts begin anew with the reset that is the cure.
    uncorrectable = largest(labels.of_gpu, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL > 0")
    failed = largest(labels.of_gpu, "DCGM_FI_DEV_ROW_REMAP_FAILURE > 0")
    corrected = _risen(labels, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", limits().memory_minutes)
    remapped = _risen(labels, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", limits().memory_minutes)
    return [
        _of_gpu(labels, "GPUSingleBitErrors", corrected),
        _of_gpu(labels, "GPUDoubleBitError", uncorrectable),
        _of_gpu(labels, "GPURowRemapPending", remapped),
        _of_gpu(labels, "GPURowRemapFailure", failed),
    ]


def _throttling(labels: SeriesLabels) -> list[Json]:
    """By the time that clocks were lowered or by dcgm-exporter's count of the reasons, whichever is printed."""
    found, window = [], _rate_window()
    for name, field, share, events in (
        ("GPUThermalThrottling", "THERMAL", limits().thermal_share, "sw_thermal|hw_thermal"),
        # Not power_cap: a GPU at its own limit is at work.
        ("GPUPowerThrottling", "POWER", limits().power_share, "hw_power_brake"),
    ):
        counted = selector("DCGM_EXP_CLOCK_EVENTS_COUNT", f'clock_event=~"{events}"')
        expression = any_of(
            largest(labels.of_gpu, f"rate(DCGM_FI_DEV_{field}_VIOLATION[{window}])") + f" / 1e9 > {share}",
            largest(labels.of_gpu, f"{counted} > 0"),
        )
        found.append(_of_gpu(labels, name, expression))
    return found


def _straggling(labels: SeriesLabels) -> list[Json]:
    """Busy GPUs whose SM clock and power are both below those of their model's other busy GPUs.

    Power alone differs between workloads, and a GPU at its power limit lowers its clock: a slow one is low in both.
    """
    figures, window = limits(), _rate_window()
    busy = largest([labels.uuid], f"avg_over_time(DCGM_FI_DEV_GPU_UTIL[{window}])") + f" >= {figures.busy_percent}"
    records = [
        record(name, largest(labels.of_gpu, f"avg_over_time({field}[{window}])") + f"\nand on ({labels.uuid}) {busy}")
        for name, field in ((_BUSY_CLOCK, "DCGM_FI_DEV_SM_CLOCK"), (_BUSY_POWER, "DCGM_FI_DEV_POWER_USAGE"))
    ]
    clock, power = (
        f"{name} < on ({labels.model}) group_left () "
        f"{figures.straggler_share} * quantile by ({labels.model}) (0.5, {name})"
        for name in (_BUSY_CLOCK, _BUSY_POWER)
    )
    peers = f"count by ({labels.model}) ({_BUSY_CLOCK}) >= {figures.straggler_peers}"
    slow = f"{clock}\nand on ({labels.uuid}) {power}\nand on ({labels.model}) {peers}"
    return [*records, _of_gpu(labels, "GPUStraggler", slow)]


def _pcie_replays(labels: SeriesLabels) -> str:
    rate = largest(labels.of_gpu, f"rate(DCGM_FI_DEV_PCIE_REPLAY_COUNTER[{_rate_window()}])")
    return f"{rate} * 60 > {limits().pcie_replays_per_minute}"


def _rate_window() -> str:
    return f"{limits().rate_minutes}m"
