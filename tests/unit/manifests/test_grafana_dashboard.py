"""The Grafana dashboard: Grafana reads it, panels do not overlap, and every query is about what is chosen."""

import json
import re
from itertools import combinations

import pytest

from kubectl_ghost.domain.dcgm_fields import all_fields, default_fields
from kubectl_ghost.manifests.grafana_dashboard import dashboard, dashboard_config_map
from kubectl_ghost.manifests.series_labels import SeriesLabels, renamed
from tests.unit.manifests.grafana_schema import complaints

PLAIN = dashboard(SeriesLabels())
PANELS = [panel for panel in PLAIN["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
FIELD = re.compile(r"\bDCGM_\w+")


def test_grafana_reads_it():
    assert complaints(PLAIN) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"titel": "x"}, ".titel is unknown"),
        ({"schemaVersion": "41"}, ".schema_version: '41' is no"),
        ({"templating": {"list": [{"type": "query", "name": "a", "sort": 99}]}}, ".sort: 99 is no"),
    ],
)
def test_what_grafana_would_not_read_is_noticed(change, words):
    assert [complaint for complaint in complaints({**PLAIN, **change}) if words in complaint]


def test_there_is_everything_that_a_fleet_is_looked_at_for():
    titles = {panel["title"] for panel in PLAIN["panels"]}
    assert {"Fleet", "Utilisation", "Pods", "Faults", "MIG", "Clocks", "Memory, power and temperature"} <= titles
    assert {"Free", "Held", "GPUs by utilisation", "XIDs", "XIDs over time", "Firing alerts"} <= titles
    kinds = {panel["title"]: panel["type"] for panel in PANELS}
    assert (kinds["GPUs by utilisation"], kinds["XIDs"], kinds["XIDs over time"]) == (
        "heatmap",
        "table",
        "state-timeline",
    )


def test_panels_have_their_place_and_number():
    assert len({panel["id"] for panel in PLAIN["panels"]}) == len(PLAIN["panels"])
    cells = [place["gridPos"] for place in PLAIN["panels"]]
    assert all(cell["x"] >= 0 and cell["x"] + cell["w"] <= 24 for cell in cells)
    for one, other in combinations(cells, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)


def test_every_panel_says_what_it_shows_and_asks_the_chosen_datasource():
    for panel in PANELS:
        assert panel["description"].endswith("."), panel["title"]
        assert panel["targets"]
        assert [target["refId"] for target in panel["targets"]] == list("ABC")[: len(panel["targets"])]
        for part in (panel, *panel["targets"]):
            assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_every_series_is_of_the_chosen_nodes():
    for expression in EXPRESSIONS:
        for name, matchers in re.findall(r"\b(DCGM_\w+|ALERTS)(\{[^}]*\})?", expression):
            assert 'Hostname=~"$node"' in matchers, expression
            assert name == "ALERTS" or 'modelName=~"$model"' in matchers, expression


def test_every_series_is_one_that_dcgm_exporter_has():
    used = {name for expression in EXPRESSIONS for name in FIELD.findall(expression)}
    assert used <= {field.name for field in all_fields()}
    optional = used - {field.name for field in default_fields()}
    assert optional == {"DCGM_FI_DEV_THERMAL_VIOLATION", "DCGM_FI_DEV_POWER_VIOLATION"}
    described = {
        name for panel in PANELS if "by default" in panel["description"] for name in FIELD.findall(panel["description"])
    }
    assert described == optional


def test_variables_show_everything_at_first():
    datasource, *variables = PLAIN["templating"]["list"]
    assert (datasource["type"], datasource["query"]) == ("datasource", "prometheus")
    assert [variable["name"] for variable in variables] == ["node", "model", "namespace"]
    assert [variable["query"]["query"].rsplit(", ", 1)[1] for variable in variables] == [
        "Hostname)",
        "modelName)",
        "namespace)",
    ]
    for variable in variables:
        assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (True, True, ".*")


def test_labels_have_the_names_that_they_have_in_prometheus():
    names = {"pod": "exported_pod", "namespace": "exported_namespace", "Hostname": "hostname", "UUID": "uuid"}
    text = json.dumps(dashboard(renamed(f"{name}={other}" for name, other in names.items())))
    assert not re.search(r"(\bpod|\bnamespace|Hostname|UUID)(!?=|\}\}|, |\))", text)
    assert all(other in text for other in names.values())


def test_the_config_map_holds_the_same_dashboard():
    config_map = dashboard_config_map(SeriesLabels())
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(config_map["data"]["gpu-fleet.json"]) == PLAIN
