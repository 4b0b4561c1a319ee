"""The metrics that dcgm-exporter makes itself (DCGM_EXP_...), each a list of (labels of its own, value) a device.

Sources: NVIDIA/dcgm-exporter d5e5f51, internal/pkg/collector: clock_events_collector.go, xid_collector.go,
gpu_health_collector.go, p2p_status_collector.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from ghost_agent.sampling import Sample
from kubectl_ghost.domain.board_figures import board_figures
from kubectl_ghost.domain.fault_catalogue import codes, explain

_WINDOW_SECONDS = 300
_SAMPLES_IN_WINDOW = _WINDOW_SECONDS // 30
"""The exporter looks every 30 s, and counts each look at which a reason held."""
_WINDOW = {"window_size_in_ms": str(_WINDOW_SECONDS * 1000)}
WATCHES = ("PCIE", "NVLINK", "PMU", "MCU", "MEM", "SM", "INFOROM", "THERMAL", "POWER", "DRIVER")
_RESULTS = {"WARN": 10, "FAIL": 20}
_OK = "DCGM_FR_OK"
_XID_CODES = {79: "DCGM_FR_FALLEN_OFF_BUS", 95: "DCGM_FR_UNCONTAINED_ERROR"}
"""XIDs that DCGM's health check has an error of their own for; all others are DCGM_FR_XID_ERROR (HealthMonitor)."""

Labelled = Iterator[tuple[dict[str, str], int]]


def _xid_errors(sample: Sample, moment: float) -> Labelled:
    """How often each XID came within the window; of one that has gone only the last time is known."""
    recent = Counter(xid.code for xid in sample.device.xids if _seconds(xid.since) > moment - _WINDOW_SECONDS)
    for code, count in sorted(recent.items()):
        yield {**_WINDOW, "xid": str(code)}, count
    if not recent:
        yield dict(_WINDOW), 0


def _clock_events(sample: Sample, _: float) -> Labelled:
    """Each reason for a lower clock that holds now, as if it had held all through the window."""
    events = sample.gpu.effect.clock_events if sample.busy else ("gpu_idle",)
    for event in events:
        yield {**_WINDOW, "clock_event": event}, _SAMPLES_IN_WINDOW
    if not events:
        yield dict(_WINDOW), 0


def _health(sample: Sample, _: float) -> Labelled:
    """DCGM's ten watches: what the XIDs of the GPU and its state come to on each."""
    found = dict.fromkeys(WATCHES, (0, _OK))
    for event in sample.gpu.effect.clock_events:
        watch = {"hw_thermal": "THERMAL", "hw_power_brake": "POWER"}.get(event)
        if watch:
            found[watch] = (_RESULTS["WARN"], f"DCGM_FR_CLOCK_THROTTLE_{watch}")
    for xid in sample.device.xids:
        said = explain(xid.code).dcgm if xid.code in codes() else None
        if said is None:
            continue
        watched, result = said
        for watch in WATCHES if watched == "all" else (watched,):
            found[watch] = max(found[watch], (_RESULTS[result], _XID_CODES.get(xid.code, "DCGM_FR_XID_ERROR")))
    for watch, (value, error) in found.items():
        yield {"health_watch": watch, "health_error_code": error}, value


def _p2p(sample: Sample, _: float) -> Labelled:
    """NVLink to each other GPU of the node; one link down of several leaves it working."""
    status, value = ("OK", 0) if board_figures(sample.gpu.model).nvlink_links else ("NotSupported", 5)
    for peer in sample.gpu.peers:
        yield {"link_status": status, "peer_gpu": str(peer)}, value


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp() if text else 0.0


EXPORTER_FIELDS: dict[str, Callable[[Sample, float], Labelled]] = {
    "DCGM_EXP_XID_ERRORS_COUNT": _xid_errors,
    "DCGM_EXP_CLOCK_EVENTS_COUNT": _clock_events,
    "DCGM_EXP_GPU_HEALTH_STATUS": _health,
    "DCGM_EXP_P2P_STATUS": _p2p,
}
KNOWN_WITHOUT_GPU = frozenset({"DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_GPU_HEALTH_STATUS"})
"""What follows from XIDs alone, so that it is still told of a GPU that has fallen off the bus."""
