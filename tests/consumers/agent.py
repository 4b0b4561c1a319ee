"""The metrics agent of a real fleet, and a Prometheus that finds the fleet's nodes through it."""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.support import E2ECluster

Json = dict[str, Any]
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "prometheus.yaml"


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
    """The configuration of the documentation, on another port and looking once a second."""
    text = EXAMPLE.read_text(encoding="utf-8").replace("localhost:9400", f"127.0.0.1:{port}")
    config: Json = yaml.safe_load(text)
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = list(rule_files)
    for job in config["scrape_configs"]:
        for found in job["http_sd_configs"]:
            found["refresh_interval"] = "1s"
    return config
