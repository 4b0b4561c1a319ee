"""The metrics agent of a real fleet, and a Prometheus that finds the fleet's nodes through it."""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Iterator
from typing import Any

from tests.e2e.support import E2ECluster

Json = dict[str, Any]


@contextlib.contextmanager
def serving(cluster: E2ECluster, *flags: str) -> Iterator[int]:
    """`metrics serve` on a free port, which is returned, until the block ends."""
    process = cluster.start("metrics", "serve", "--port", "0", *flags)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        match = re.search(r"http://localhost:(\d+)/metrics", said)
        assert match, said + process.stderr.read()
        yield int(match[1])
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def scraping(port: int, *rule_files: str) -> Json:
    """A configuration that finds every node through the agent's /sd, and looks once a second."""
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": list(rule_files),
        "scrape_configs": [
            {
                "job_name": "gpus",
                "honor_labels": True,
                "http_sd_configs": [{"url": f"http://127.0.0.1:{port}/sd", "refresh_interval": "1s"}],
            }
        ],
    }
