"""`make soak`: prints what came of it, and exits other than 0 with what was wrong."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from pathlib import Path

from tests.bench.agent_process import serving
from tests.bench.rows import Bench
from tests.e2e.support import E2ECluster, Ghost, running_cluster
from tests.soak.churn import Churn
from tests.soak.course import GPUS, Course
from tests.soak.report import failures, rows
from tests.soak.scraping import Scraper

_FULL = 0.8
"""Of the GPUs at most so many are asked for: a pod that finds none would wait for another to go."""


def main() -> int:
    """Make a cluster, run the soak on it, and report."""
    given = _parser().parse_args()
    flags = ["--disable-qps-limits"] if given.disable_qps_limits else []
    with tempfile.TemporaryDirectory() as folder:
        user = Ghost(Path(folder))
        user.home.mkdir()
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        with contextlib.contextmanager(running_cluster)(user, *flags) as cluster:
            problems = _soak(cluster, given)
    for problem in problems:
        print(f"FAILED: {problem}")
    return 1 if problems else 0


def _soak(cluster: E2ECluster, given: argparse.Namespace) -> list[str]:
    names = [f"node-{index}" for index in range(given.nodes)]
    cluster.ghost("add-pool", "--count", str(given.nodes), "--timeout", "10m")
    Bench(cluster, 1).settle()
    most = int(_FULL * given.nodes * GPUS)
    churn = Churn(cluster, standing=given.standing, most=most, claims_percent=given.claims_percent)
    print(f"{given.nodes} nodes of {GPUS} GPUs, a scrape of each every {given.interval:g} s, {given.standing} pods run")
    with serving(cluster) as agent:
        scraper = Scraper(agent.port, names, given.interval, churn.ledger)
        course = Course(cluster, agent, churn, scraper)
        course.run(given.seconds)
        if course.seen.seconds:
            for name, value in rows(course.seen, scraper.tally, agent.memory()[1]):
                print(f"{name:34} {value}")
        for line in agent.warnings[:5]:
            print(f"{'the agent said':34} {line}")
    return [*failures(course.seen, scraper.tally), *(f"churn: {text}" for text in churn.errors[:5])]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="of churn (default 300)")
    parser.add_argument("--nodes", type=int, default=1000, help="default 1000")
    parser.add_argument(
        "--interval", type=float, default=15.0, help="seconds between two scrapes of a node (default 15)"
    )
    parser.add_argument("--standing", type=int, default=1000, help="pods that run at a time (default 1000)")
    parser.add_argument("--claims-percent", type=int, default=10, help="of the pods, by a ResourceClaim (default 10)")
    parser.add_argument("--disable-qps-limits", action="store_true", help="let the control plane be as fast as it can")
    return parser


if __name__ == "__main__":
    sys.exit(main())
