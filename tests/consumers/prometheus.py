"""A real Prometheus that scrapes what a test tells it to, and goes when the test does."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.consumers.prometheus_binaries import binary

Json = dict[str, Any]
_PATIENCE_S = 60
"""Generous: no test asserts how long things take."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running server and what a test asks of it."""

    url: str

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}{query}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[Json]:
        """The rows of an expression now."""
        rows: list[Json] = self.get("query", query=expression)["result"]
        return rows

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[Json]:
        """The rows of an expression over a time, in Unix seconds."""
        rows: list[Json] = self.get("query_range", query=expression, start=start, end=end, step=step)["result"]
        return rows

    def targets(self) -> list[Json]:
        """What it scrapes."""
        found: list[Json] = self.get("targets", state="active")["activeTargets"]
        return found

    def alerts(self, state: str = "firing") -> list[Json]:
        """The labels of every alert in a state."""
        return [alert["labels"] for alert in self.get("alerts")["alerts"] if alert["state"] == state]


@contextlib.contextmanager
def running_prometheus(folder: Path, config: Json, *flags: str) -> Iterator[Prometheus]:
    """A server on a free port of the loopback address.

    Args:
        folder: for its configuration, its log and, in `data`, its series; blocks that are there already are served.
        config: the configuration, as in prometheus.yml.
        flags: further flags of its command line.
    """
    data, port = folder / "data", _free_port()
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [
        str(binary("prometheus")),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
        *flags,
    ]
    with (folder / "prometheus.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        server = Prometheus(f"http://127.0.0.1:{port}")
        _wait_until_ready(server, process, data, folder / "prometheus.log")
        yield server
    finally:
        process.terminate()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(server: Prometheus, process: subprocess.Popen[bytes], data: Path, log: Path) -> None:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise AssertionError(f"prometheus ended with {process.returncode}:\n{log.read_text()}")
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{server.url}/-/ready", timeout=5):
            # The port may have been taken by somebody else's in the meantime, who would answer just as well.
            assert server.get("status/flags")["storage.tsdb.path"] == str(data)
            return
        time.sleep(0.1)
    raise AssertionError(f"prometheus is not ready:\n{log.read_text()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
