"""When a GPU's metrics call for somebody, read from the packaged catalogue of alerts.

How urgent each of NVIDIA's recoveries is and the limits that telemetry is held against stand with their sources in
data/alerts.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kubectl_ghost.domain.fault_catalogue import Xid, codes, explain
from kubectl_ghost.domain.keys import Json


@dataclass(frozen=True, slots=True)
class XidAlert:
    """The alert for XIDs of one recovery.

    Attributes:
        name: of the alert.
        severity: info, warning or critical.
        passing: whether such an XID leaves nothing broken: it is told of for a while, not for as long as dcgm-exporter
            keeps showing it.
    """

    name: str
    severity: str
    passing: bool


@dataclass(frozen=True, slots=True)
class TelemetryAlert:
    """The alert for a kind of fault that shows in telemetry.

    Attributes:
        name: of the alert.
        kind: of the fault catalogue.
        severity: info, warning or critical.
        wait: how long it has to hold before it fires, in Prometheus' notation; empty: not at all.
    """

    name: str
    kind: str
    severity: str
    wait: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The figures of data/alerts.json that alerts of telemetry are made with; what each means stands there."""

    rate_minutes: int
    memory_minutes: int
    passing_minutes: int
    pcie_replays_per_minute: int
    nvlink_crc_errors_per_second: int
    thermal_share: float
    power_share: float
    lost_within_hours: int
    silent_within_hours: int
    busy_percent: int
    straggler_share: float
    straggler_peers: int
    idle_percent: int
    idle_hours: int


@dataclass(frozen=True, slots=True)
class Advice:
    """What NVIDIA's catalogue says is to be done about an XID; None where it says nothing."""

    recovery: str | None
    immediate: str | None
    investigatory: str | None


@cache
def _data() -> Json:
    text = files("kubectl_ghost.data").joinpath("alerts.json").read_text(encoding="utf-8")
    data: Json = json.loads(text)
    return data


def limits() -> Limits:
    """Every limit."""
    return Limits(**{name: row["value"] for name, row in _data()["limits"].items()})


def xid_alert(recovery: str | None) -> XidAlert:
    """The alert for XIDs of this recovery, None being that of codes for which the catalogue has no advice."""
    data = _data()
    return _alert(data["without_advice"] if recovery is None else data["recoveries"][recovery])


def unknown_xid_alert() -> XidAlert:
    """The alert for XIDs that the catalogue does not describe."""
    return _alert(_data()["not_in_catalogue"])


def telemetry_alert(name: str) -> TelemetryAlert:
    """The alert of that name."""
    row = _data()["telemetry"][name]
    return TelemetryAlert(name, row["kind"], row["severity"], row["wait"])


def _alert(row: Json) -> XidAlert:
    return XidAlert(row["alert"], row["severity"], row["passing"])


def codes_by_advice() -> Mapping[Advice, tuple[int, ...]]:
    """Every XID of the catalogue under what is to be done about it, in the order of their first codes."""
    found: dict[Advice, tuple[int, ...]] = {}
    for xid in map(explain, codes()):
        advice = _advice(xid)
        found[advice] = (*found.get(advice, ()), xid.code)
    return found


def _advice(xid: Xid) -> Advice:
    return Advice(xid.recovery, xid.immediate_action, xid.investigatory_action)
