"""The catalogue of alerts: complete, sourced, and as urgent as the recoveries are."""

import json
from importlib.resources import files

import pytest

from kubectl_ghost.domain.alert_catalogue import codes_by_advice, limits, telemetry_alert, unknown_xid_alert, xid_alert
from kubectl_ghost.domain.fault_catalogue import codes, explain, kinds

RAW = json.loads(files("kubectl_ghost.data").joinpath("alerts.json").read_text())
ROWS = [*RAW["recoveries"].values(), RAW["without_advice"], RAW["not_in_catalogue"]]


def test_every_recovery_of_the_fault_catalogue_has_an_alert():
    recoveries = {explain(code).recovery for code in codes()}
    assert set(RAW["recoveries"]) == recoveries - {None}
    names = [xid_alert(recovery).name for recovery in recoveries] + [unknown_xid_alert().name]
    assert len(set(names)) == len(names) == len(ROWS)
    assert {row["severity"] for row in ROWS} == {"info", "warning", "critical"}


def test_every_figure_names_its_sources():
    every = [*ROWS, *RAW["limits"].values(), *RAW["telemetry"].values()]
    for row in every:
        assert row["source"]
        assert set(row["source"]) <= set(RAW["sources"])
    assert set(limits().__dataclass_fields__) == set(RAW["limits"])
    used = {source for row in every for source in row["source"]}
    assert used == set(RAW["sources"])


def test_every_kind_of_fault_has_an_alert():
    silent_nodes = {"driver-crash", "node-down", "node-unreachable"}
    told = {telemetry_alert(name).kind for name in RAW["telemetry"]}
    assert told | silent_nodes | {"xid"} == set(kinds())


def test_what_needs_nobody_passes():
    passing = {row["alert"] for row in ROWS if row["passing"]}
    assert passing == {"GPUXidApplicationError", "GPUXidNotice", "GPUXidFollowsAnother"}


def test_every_code_stands_under_its_advice_once():
    found = codes_by_advice()
    assert sorted(code for group in found.values() for code in group) == codes()
    for advice, group in found.items():
        for xid in map(explain, group):
            assert (advice.recovery, advice.immediate, advice.investigatory) == (
                xid.recovery,
                xid.immediate_action,
                xid.investigatory_action,
            )


@pytest.mark.parametrize(
    ("recovery", "severity"), [("none", "info"), ("application", "warning"), ("gpu_reset", "critical")]
)
def test_severity_follows_recovery(recovery, severity):
    assert xid_alert(recovery).severity == severity
