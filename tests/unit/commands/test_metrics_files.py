"""`metrics rules` and `metrics dashboard`: files for others, printed without a cluster."""

import json

import pytest
import yaml

from kubectl_ghost import cli
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.manifests.grafana_dashboard import dashboard
from kubectl_ghost.manifests.prometheus_rules import rule_file
from kubectl_ghost.manifests.series_labels import SeriesLabels, renamed

NO_CLUSTER = ["--kubeconfig", "/dev/null", "--server", "https://127.0.0.1:1"]


def printed(capfd, *arguments):
    code = cli.run(["metrics", *arguments, *NO_CLUSTER])
    out, err = capfd.readouterr()
    assert (code, err) == (0, "")
    return out


def test_rules_are_a_rule_file_unless_the_operators_object_is_asked_for(capfd):
    assert yaml.safe_load(printed(capfd, "rules")) == rule_file(SeriesLabels())
    made = yaml.safe_load(printed(capfd, "rules", "-o", "prometheusrule"))
    assert (made["kind"], made["spec"]) == ("PrometheusRule", rule_file(SeriesLabels()))


def test_the_dashboard_is_json_unless_a_config_map_is_asked_for(capfd):
    text = printed(capfd, "dashboard")
    assert json.loads(text) == dashboard(SeriesLabels())
    made = yaml.safe_load(printed(capfd, "dashboard", "-o=configmap"))
    assert (made["kind"], made["data"]) == ("ConfigMap", {"gpu-fleet.json": text})


@pytest.mark.parametrize(("what", "made"), [("rules", rule_file), ("dashboard", dashboard)])
def test_labels_under_other_names(what, made, capfd):
    text = printed(capfd, what, "--label", "pod=exported_pod", "--label", "Hostname=node")
    assert yaml.safe_load(text) == made(renamed(["pod=exported_pod", "Hostname=node"]))


@pytest.mark.parametrize("what", ["rules", "dashboard"])
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["--label", "pods=x"],
            ExitCode.ERROR,
            'error: invalid label "pods=x"\nWrite pod=exported_pod. The labels are',
        ),
        (["-o", "toml"], ExitCode.USAGE, "'toml' is not one of"),
        (["extra"], ExitCode.USAGE, "unexpected extra argument"),
    ],
)
def test_what_is_not_understood(what, arguments, code, words, capfd):
    assert cli.run(["metrics", what, *arguments]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert words in err
