"""What the soak judges by: its own account of pods, its own reading of a scrape, its own truth."""

from __future__ import annotations

import pytest

from tests.soak.course import Seen
from tests.soak.exposition import counters, holdings
from tests.soak.ledger import GPUS_ANNOTATION, Ledger
from tests.soak.report import failures, rows
from tests.soak.scraping import Tally
from tests.soak.truth import differences, held, wrong_records

POD = ',pod="{}",namespace="team",container="main"'


def line(gpu, pod="", value=0, node="node-0", metric="DCGM_FI_DEV_GPU_UTIL"):
    held_by = POD.format(pod) if pod else ""
    return f'{metric}{{gpu="{gpu}",UUID="GPU-{node}-{gpu}",Hostname="{node}"{held_by}}} {value}\n'


def scrape(*lines):
    return "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n" + "".join(lines)


def energy(*lines):
    name = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
    return f"# HELP {name} Total energy.\n# TYPE {name} counter\n" + "".join(lines)


def pod(name, recorded=None, *, node="node-0", gpus=1, phase="Running", deleted=False, claims=False):
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "annotations": {GPUS_ANNOTATION: recorded} if recorded else {},
            **({"deletionTimestamp": "2026-06-01T00:00:00Z"} if deleted else {}),
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            **({"resourceClaims": [{"name": "gpu"}]} if claims else {}),
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}}}],
        },
        "status": {"phase": phase},
    }


def claim(*devices, by=("a",), driver="gpu.nvidia.com"):
    results = [{"driver": driver, "pool": "node-0", "device": device} for device in devices]
    return {
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"uid": f"uid-{name}"} for name in by],
        }
    }


def test_a_scrape_says_who_has_which_gpu_and_how_far_counters_are():
    name = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
    text = scrape(line(0, "a", 95), line(1)) + energy(line(0, "a", 7, metric=name), line(1, value=8, metric=name))
    assert list(holdings(text)) == [(("node-0", 0, "team/a"), 95.0), (("node-0", 1, ""), 0.0)]
    assert list(counters(text)) == [(f"{name} GPU-node-0-0", 7.0), (f"{name} GPU-node-0-1", 8.0)]


def test_records_and_claims_say_who_has_which_gpu():
    pods = [pod("a", claims=True, gpus=0), pod("b", "gpu-3,gpu-4", gpus=2), pod("c", "gpu-5", phase="Succeeded")]
    claims = [claim("gpu-0", by=("a", "gone")), claim("gpu-1", by=("c",)), claim("gpu-2", driver="net.example.com")]
    assert held(pods, claims) == {("node-0", 0, "team/a"), ("node-0", 3, "team/b"), ("node-0", 4, "team/b")}


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([pod("a", "gpu-0"), pod("b", "gpu-1")], []),
        ([pod("a")], ["team/a asks for 1 GPUs and has none on record"]),
        ([pod("a", "gpu-0", gpus=2)], ["team/a asks for 2 GPUs and has gpu-0 on record"]),
        ([pod("a", "gpu-0"), pod("b", "gpu-0")], ["node-0/gpu-0 is recorded on team/a and team/b"]),
        ([pod("a", "gpu-0"), pod("b", "gpu-0", node="node-1")], []),
        ([pod("a", node="", phase="Pending")], []),
    ],
)
def test_records_that_cannot_be_true(pods, words):
    assert wrong_records(pods) == words


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([line(0, "a", 95), line(1)], []),
        ([line(0), line(1)], ["team/a on node-0/gpu-0 is not shown"]),
        ([line(0, "a", 95), line(1, "b", 95)], ["team/b on node-0/gpu-1 is shown and not so"]),
        ([line(0, "a"), line(1)], ["team/a on node-0/gpu-0 has utilisation 0"]),
        ([line(0, "a", 95), line(1, value=5)], ["nobody on node-0/gpu-1 has utilisation 5"]),
        ([line(0, "a", 95)], ["node-0 shows 1 of 2 GPUs"]),
        ([line(0, "a", 95), line(0), line(1)], ["nobody on node-0/gpu-0 is shown as free beside its pod"]),
        (
            [line(0, "a", 95), line(1), line(0, node="node-1"), line(1, node="node-1")],
            ["node-1 is shown and was not asked for"],
        ),
    ],
)
def test_how_a_scrape_differs_from_the_truth(lines, words):
    expected = {("node-0", 0, "team/a"), ("node-7", 0, "team/elsewhere")}
    assert differences(scrape(*lines), expected, ["node-0"], 2) == words


def test_how_far_behind_a_scrape_is():
    ledger = Ledger()
    ledger.see("ADDED", pod("a", phase="Pending"), 10.0)
    assert ledger.lag("node-0", set(), 20.0) == 0.0
    ledger.see("MODIFIED", pod("a", "gpu-0"), 12.0)
    assert ledger.lag("node-0", set(), 20.0) == 8.0
    assert ledger.lag("node-0", {("node-0", 0, "team/a")}, 20.0) == 0.0
    assert ledger.lag("node-1", set(), 20.0) == 0.0
    ledger.see("MODIFIED", pod("a", "gpu-0", deleted=True), 13.0)
    assert ledger.lag("node-0", set(), 20.0) == 0.0
    ledger.see("DELETED", pod("a", "gpu-0"), 14.0)
    assert ledger.lag("node-0", {("node-0", 0, "team/a")}, 20.0) == 6.0
    assert ledger.lag("node-0", {("node-0", 0, "team/a")}, 13.0) == 0.0


def test_pods_are_counted_through_their_lives():
    ledger = Ledger()

    def counts():
        return ledger.waiting, ledger.running, ledger.restless(), ledger.bound, ledger.deleted

    ledger.see("ADDED", pod("a", node="", phase="Pending"), 1.0)
    assert counts() == (1, 0, 1, 0, 0)
    ledger.see("MODIFIED", pod("a"), 2.0)
    assert counts() == (0, 0, 1, 1, 0)
    ledger.see("MODIFIED", pod("a", "gpu-0"), 3.0)
    ledger.see("ADDED", pod("b", claims=True), 3.0)
    assert counts() == (0, 2, 0, 2, 0)
    ledger.see("MODIFIED", pod("a", "gpu-0", deleted=True), 4.0)
    assert counts() == (0, 1, 1, 2, 0)
    ledger.see("DELETED", pod("a", "gpu-0"), 5.0)
    assert counts() == (0, 1, 0, 2, 1)


def soaked(*, end=50.0, latencies=100):
    memory = [(float(second), 50.0 if second < 200 else end) for second in range(301)]
    seen = Seen(seconds=300.0, churned=280.0, bound=5600, cpu=30.0, memory=memory, quiet=[3.0, 4.0])
    return seen, Tally(latencies=[0.002] * latencies, due=100)


def test_what_is_a_failure():
    assert list(failures(*soaked())) == []
    assert list(failures(*soaked(end=55.0))) == []
    assert list(failures(*soaked(end=56.0))) == ["memory grew from 50 to 56 MB, by more than 10%"]
    assert list(failures(*soaked(latencies=95))) == []
    assert list(failures(*soaked(latencies=94))) == ["only 94 of 100 scrapes were made"]
    seen, tally = soaked()
    seen.problems, tally.problems = ["drift"], ["503"]
    assert list(failures(seen, tally)) == ["drift", "503"]


def test_the_table():
    assert dict(rows(*soaked(end=52.0), 60.0)) == {
        "length": "300 s, 280 s of it with churn",
        "scrapes": "100 of 100 due, 0 failed",
        "latency p50 / p99 / most": "2.0 ms / 2.0 ms / 2.0 ms",
        "pods churned": "5600, 20 a second",
        "behind the cluster at most": "0.00 s",
        "quiet moments compared": "2, quiet after 4.0 s at most",
        "counters that fell": "0",
        "memory after warm-up / end / peak": "50 / 52 / 60 MB",
        "CPU": "30.0 s, 10.0 % of a core",
    }
