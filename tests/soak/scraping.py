"""Scraping every node as Prometheus does: evenly spread over the interval, compressed, over connections that stay."""

from __future__ import annotations

import gzip
import http.client
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.soak.exposition import counters, holdings
from tests.soak.ledger import Ledger

_TIMEOUT = 10.0
"""Prometheus' own scrape_timeout."""
_THREADS = 8
"""More than are busy at a time; Prometheus shares connections between targets of one address, too."""
_LATE_SECONDS = 5.0
"""By how much a scrape may be behind the cluster. CHOICE."""
_SHOWN_PROBLEMS = 5


@dataclass
class Tally:
    """What has come of the scrapes so far. `latencies` are seconds, `lag` is the largest that was seen."""

    latencies: list[float] = field(default_factory=list)
    lag: float = 0.0
    due: int = 0
    failed: int = 0
    late: int = 0
    fallen: int = 0
    problems: list[str] = field(default_factory=list)

    def problem(self, text: str) -> None:
        """Keep the first few in words."""
        if len(self.problems) < _SHOWN_PROBLEMS:
            self.problems.append(text)


class Scraper:
    """Scrapes until it is stopped. What it finds wrong is counted, nothing ends it."""

    def __init__(self, port: int, nodes: Sequence[str], interval: float, ledger: Ledger) -> None:
        self.tally, self.nodes = Tally(), nodes
        self._port, self._interval, self._ledger = port, interval, ledger
        self._counters: dict[str, dict[str, float]] = {}
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._number, self._began = 0, 0.0
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(_THREADS)]

    def start(self) -> None:
        """Begin."""
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, and wait for what is under way."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self.tally.due = int((time.monotonic() - self._began) * len(self.nodes) / self._interval)

    def _work(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT)
        while not self._ended.is_set():
            with self._lock:
                number, self._number = self._number, self._number + 1
            due = self._began + number * self._interval / len(self.nodes)
            if self._ended.wait(max(0.0, due - time.monotonic())):
                break
            node = self.nodes[number % len(self.nodes)]
            try:
                self._scrape(connection, node)
            except (OSError, http.client.HTTPException, RuntimeError) as error:
                connection.close()
                with self._lock:
                    self.tally.failed += 1
                    self.tally.problem(f"{node}: {error!r}")
        connection.close()

    def _scrape(self, connection: http.client.HTTPConnection, node: str) -> None:
        began = time.monotonic()
        connection.request("GET", f"/nodes/{node}/metrics", headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        took = time.monotonic() - began
        if answer.status != 200:
            raise RuntimeError(f"{answer.status} {body.decode(errors='replace')}")
        text = gzip.decompress(body).decode()
        shown = {holding for holding, _ in holdings(text)}
        if not shown:
            raise RuntimeError("no GPUs")
        lag = self._ledger.lag(node, shown, began)
        found = dict(counters(text))
        with self._lock:
            tally = self.tally
            tally.latencies.append(took)
            tally.lag = max(tally.lag, lag)
            if lag > _LATE_SECONDS:
                tally.late += 1
                tally.problem(f"{node}: {lag:.1f} s behind the cluster")
            self._compare(tally, found, self._counters.setdefault(node, found))
            self._counters[node] = found

    def _compare(self, tally: Tally, now: dict[str, float], before: dict[str, float]) -> None:
        """Counters of the same GPU may only rise. Two scrapes of a node are an interval apart, so never at once."""
        for key, value in now.items():
            if value < before.get(key, value):
                tally.fallen += 1
                tally.problem(f"{key} fell from {before[key]:.0f} to {value:.0f}")
