"""The history that `metrics backfill` writes, in a real Prometheus: rules that look back a day need no day."""

import contextlib
import time

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.consumers.prometheus import running_prometheus
from tests.consumers.promtool import promtool
from tests.e2e.fleet import apply, claim_template, deployment, pod, running

NOTEBOOK, TRAINER = "notebook", "trainer"
RARELY_USED = 'avg_over_time(DCGM_FI_DEV_GPU_UTIL{pod!=""}[24h]) < 10'


def workload(name, utilization, **given):
    annotations = {"kubectl-ghost.dev/gpu-util": utilization}
    template = pod(name, **given)
    template["metadata"]["annotations"] = annotations
    return deployment(template, 1)


@pytest.fixture
def history(empty, tmp_path):
    """A fleet with a notebook, a trainer and free GPUs, and its last day as a file."""
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "4")
    apply(
        empty,
        claim_template("one", {}),
        workload(NOTEBOOK, "4", template="one"),
        workload(TRAINER, "90", template="one"),
    )
    running(empty, NOTEBOOK)
    running(empty, TRAINER)
    path = tmp_path / "history.om"
    done = empty.ghost("metrics", "backfill", "--from", "25h", "--age", "25h", "-o", str(path))
    assert done.stderr.endswith(f"written to {path}\n")
    return path


@contextlib.contextmanager
def served(folder, path, *flags, **config):
    """A Prometheus that has a history for its own past."""
    done = promtool("tsdb", "create-blocks-from", "openmetrics", str(path), str(folder / "data"))
    assert done.returncode == 0, done.stdout + done.stderr
    config = {"global": {"scrape_interval": "15s", "evaluation_interval": "1s"}, **config}
    with running_prometheus(folder, config, "--storage.tsdb.retention.time=30d", *flags) as prometheus:
        yield prometheus


def test_a_rule_over_a_day_finds_the_notebook_and_nothing_else(history, tmp_path):
    with served(tmp_path, history) as prometheus:
        rows = prometheus.query(RARELY_USED)
        assert [(row["metric"]["pod"].split("-")[0], row["metric"]["namespace"]) for row in rows] == [
            (NOTEBOOK, "default")
        ]
        assert [float(row["value"][1]) for row in rows] == [4]
        (trained,) = prometheus.query(f'avg_over_time(DCGM_FI_DEV_GPU_UTIL{{pod=~"{TRAINER}.*"}}[24h])')
        assert float(trained["value"][1]) == 90
        now = time.time()
        (curve,) = prometheus.query_range(f'DCGM_FI_DEV_FB_USED{{pod=~"{TRAINER}.*"}}', now - 24 * 3600, now - 60, 600)
        assert len(curve["values"]) == 144
        # A busy GPU draws more: the energy of a day is what its power says.
        (energy,) = prometheus.query(f'increase(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{pod=~"{TRAINER}.*"}}[24h])')
        (power,) = prometheus.query(f'avg_over_time(DCGM_FI_DEV_POWER_USAGE{{pod=~"{TRAINER}.*"}}[24h])')
        assert float(energy["value"][1]) == pytest.approx(float(power["value"][1]) * 86400 * 1000, rel=0.01)


def test_the_alert_of_our_own_rules_fires_for_it_alone(history, rules, tmp_path):
    with served(tmp_path, history, rule_files=[str(rules)]) as prometheus:
        end = time.monotonic() + 60
        while not prometheus.alerts() and time.monotonic() < end:
            time.sleep(0.2)
        assert [(alert["alertname"], alert["pod"].split("-")[0]) for alert in prometheus.alerts()] == [
            ("GPUIdle", NOTEBOOK)
        ]


def test_it_is_openmetrics(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "2")
    text = empty.ghost("metrics", "backfill", "--from", "30m", "--step", "1m").stdout
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert len(families) == 25
    utilization = families["DCGM_FI_DEV_GPU_UTIL"]
    assert (utilization.type, utilization.documentation) == ("gauge", "GPU utilization (in %).")
    assert {float(sample.timestamp) % 60 for sample in utilization.samples} == {0}
    assert len(utilization.samples) == 2 * 30


def test_without_an_age_pods_have_begun_when_they_did(empty, tmp_path):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "1")
    apply(empty, claim_template("one", {}), workload(TRAINER, "90", template="one"))
    running(empty, TRAINER)
    done = empty.ghost(
        "metrics", "backfill", "--from", "2h", "--fields", "DCGM_FI_DEV_GPU_UTIL", "-o", str(tmp_path) + "/"
    )
    assert "Warning: the youngest of 1 pods is" in done.stderr
    lines = (tmp_path / "node-0.om").read_text().splitlines()
    assert lines[0] == "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %)."
    assert lines[-1] == "# EOF"
    free = [line for line in lines if line.startswith("DCGM") and "pod=" not in line]
    assert len(free) > 230
    assert {line.split()[-2] for line in free} == {"0"}
