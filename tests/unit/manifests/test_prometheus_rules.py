"""The alert rules as objects; what they come to on a Prometheus is tests/consumers/test_rules.py."""

import json
import re

import pytest

from kubectl_ghost.commands.metrics_rules import command
from kubectl_ghost.domain.dcgm_fields import all_fields, default_fields, select_fields
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.fault_catalogue import codes
from kubectl_ghost.manifests.prometheus_rules import prometheus_rule, rule_file
from kubectl_ghost.manifests.series_labels import SeriesLabels, renamed

PLAIN = rule_file(SeriesLabels())
RULES = [rule for group in PLAIN["groups"] for rule in group["rules"]]
ALERTS = [rule for rule in RULES if "alert" in rule]
XID_RULES = PLAIN["groups"][0]["rules"]
MATCHED = re.compile(r'err_code=~"([\d|]+)"')
FIELD = re.compile(r"\bDCGM_\w+")


def test_every_code_of_the_catalogue_is_matched_by_one_alert():
    *known, unknown = XID_RULES
    found = [code for rule in known for code in MATCHED.findall(rule["expr"])[0].split("|")]
    assert sorted(map(int, found)) == codes()
    not_told_of = re.search(r'err_code!~"([\d|]+)"', unknown["expr"])[1].split("|")
    assert sorted(map(int, not_told_of)) == [0, *codes()]


def test_names_and_labels():
    names = [rule["alert"] for rule in ALERTS]
    assert len(set(names)) == len(names) == 26
    for rule in ALERTS:
        assert rule["alert"].startswith("GPU")
        assert set(rule["labels"]) <= {"severity", "recovery"}
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert {"summary", "description"} <= set(rule["annotations"])


def test_every_series_is_one_that_dcgm_exporter_has():
    used = {name for rule in RULES for name in FIELD.findall(rule["expr"])}
    assert used <= {field.name for field in all_fields()}
    assert len(used - {field.name for field in default_fields()}) == 9
    said = re.search(r"metrics serve --fields (\S+)", command.epilog)[1]
    assert used <= {field.name for field in select_fields(said)}


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_every_alert_names_the_labels_that_it_keeps(rule):
    by = re.match(r"\(?max by \(([^)]*)\)", rule["expr"])
    kept = set(by[1].split(", ")) if by else {"Hostname", "gpu", "UUID", "pci_bus_id", "modelName"}
    text = json.dumps(rule["annotations"])
    assert set(re.findall(r"\$labels\.(\w+)", text)) <= kept
    assert "$labels.Hostname" in text


def test_labels_have_the_names_that_they_have_in_prometheus():
    names = {"pod": "exported_pod", "namespace": "exported_namespace", "container": "exported_container"}
    other = {"Hostname": "hostname", "UUID": "uuid"}
    text = json.dumps(rule_file(renamed(f"{name}={new}" for name, new in (names | other).items())))
    plain = re.findall(r"(?<![$\w])(pod|namespace|container)(?=\)|, | \}|!=|=~)", text)
    assert plain == []
    assert not re.search(r"\.(pod|namespace|container)\b", text)
    assert not re.search(r"Hostname|UUID", text)
    assert all(new in text for new in (names | other).values())


def test_the_operators_object_holds_the_same_rules():
    made = prometheus_rule(SeriesLabels())
    assert (made["apiVersion"], made["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert made["metadata"] == {
        "name": "kubectl-ghost-gpus",
        "labels": {"app.kubernetes.io/managed-by": "kubectl-ghost"},
    }
    assert made["spec"] == PLAIN


def test_the_same_input_gives_the_same_bytes():
    assert json.dumps(rule_file(SeriesLabels())) == json.dumps(PLAIN)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["pod"], '"" is no name of a label'),
        (["pods=x"], 'invalid label "pods=x"'),
        (["pod=exported-pod"], '"exported-pod" is no name of a label'),
        (["pod=namespace"], "two labels cannot both be called namespace"),
        (["pod=a", "namespace=a"], "two labels cannot both be called a"),
    ],
)
def test_names_of_labels_that_cannot_be(pairs, words):
    with pytest.raises(InputError) as raised:
        renamed(pairs)
    assert words in raised.value.message


def test_the_last_name_of_a_label_counts():
    assert renamed(["pod=a", "pod=b"]).pod == "b"
    assert renamed([]) == SeriesLabels()
