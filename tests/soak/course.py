"""The course of a soak: churn, and every so often a quiet moment in which what the agent shows is compared."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from dataclasses import dataclass, field

from kubectl_ghost.cluster.resources import PODS, RESOURCE_CLAIMS
from tests.bench.agent_load import reader_of
from tests.bench.agent_process import AgentProcess
from tests.e2e.support import E2ECluster
from tests.soak.churn import Churn
from tests.soak.exposition import Holding
from tests.soak.scraping import Scraper
from tests.soak.truth import differences, held, wrong_records

GPUS = 8
_FILLED_WITHIN = 300.0
"""Seconds until as many pods must run as are to."""
_QUIET_EVERY = 60.0
"""Seconds of churn between two quiet moments."""
_QUIET_FOR = 1.0
_QUIET_WITHIN = 120.0
"""Seconds until the control plane and the agent must have done all that is to be done."""
_RIGHT_WITHIN = 5.0
"""Seconds from then on until the agent must show it."""
_SHOWN_PROBLEMS = 5


@dataclass
class Seen:
    """What was seen on the way, in seconds and MB (2^20 bytes).

    Attributes:
        seconds: from the moment on at which as many pods ran as were to, quiet moments included.
        churned: the part of it in which pods came and went.
        bound: pods that got a node in that time.
        cpu: CPU seconds of the agent in that time.
        memory: when, and how much was resident.
        quiet: how long it took each time until nothing was left to happen.
        problems: what was wrong.
    """

    seconds: float = 0.0
    churned: float = 0.0
    bound: int = 0
    cpu: float = 0.0
    memory: list[tuple[float, float]] = field(default_factory=list)
    quiet: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def resident(self, begin: float, end: float) -> float:
        """The median between two moments."""
        return statistics.median(megabytes for moment, megabytes in self.memory if begin <= moment <= end)


class Course:
    """An agent, what scrapes it, and what happens on its cluster."""

    def __init__(self, cluster: E2ECluster, agent: AgentProcess, churn: Churn, scraper: Scraper) -> None:
        self._reader = reader_of(cluster)
        self._agent, self._churn, self._scraper = agent, churn, scraper
        self._nodes = list(scraper.nodes)
        self.seen = Seen()

    def run(self, seconds: float) -> None:
        """Churn for so long."""
        self._churn.start()
        if not self._churn.fill(_FILLED_WITHIN):
            self.seen.problems.append(f"only {self._churn.ledger.running} pods ran within {_FILLED_WITHIN:.0f} s")
            return
        self._scraper.start()
        self._look()
        began, cpu, bound = time.monotonic(), self._agent.cpu(), self._churn.ledger.bound
        threading.Thread(target=self._watch_memory, args=(began,), daemon=True).start()
        while (left := seconds - self.seen.churned) > 0:
            length = min(left, _QUIET_EVERY)
            time.sleep(length)
            self.seen.churned += length
            self._look()
        self.seen.seconds = time.monotonic() - began
        self.seen.cpu = self._agent.cpu() - cpu
        self.seen.bound = self._churn.ledger.bound - bound
        self._churn.stop()
        self._scraper.stop()

    def _watch_memory(self, began: float) -> None:
        with contextlib.suppress(FileNotFoundError):
            while True:
                self.seen.memory.append((time.monotonic() - began, self._agent.memory()[0]))
                time.sleep(1)

    def _look(self) -> None:
        """Hold the churn until nothing is left to happen, and compare what the agent shows with the objects."""
        self._churn.pause()
        self._wait_until_quiet()
        pods, claims = self._reader.list(PODS).items, self._reader.list(RESOURCE_CLAIMS).items
        expected = held(pods, claims)
        end = time.monotonic() + _RIGHT_WITHIN
        while (found := self._drift(expected)) and time.monotonic() < end:
            time.sleep(0.5)
        self.seen.problems += [f"drift: {text}" for text in [*wrong_records(pods), *found][:_SHOWN_PROBLEMS]]
        self._churn.go_on()

    def _wait_until_quiet(self) -> None:
        began = since = time.monotonic()
        while time.monotonic() - since < _QUIET_FOR:
            time.sleep(0.1)
            restless = self._churn.ledger.restless()
            if restless:
                since = time.monotonic()
            if time.monotonic() - began > _QUIET_WITHIN:
                self.seen.problems.append(f"{restless} pods were not bound, run, recorded or deleted in time")
                break
        self.seen.quiet.append(time.monotonic() - began)

    def _drift(self, expected: set[Holding]) -> list[str]:
        """How the scrape of everything, and that of each node, differ from what they should show."""
        found = self._compare("/metrics", expected, self._nodes)
        for name in self._nodes:
            found += self._compare(f"/nodes/{name}/metrics", expected, [name])
        return found

    def _compare(self, path: str, expected: set[Holding], nodes: list[str]) -> list[str]:
        try:
            return differences(self._agent.get(path).decode(), expected, nodes, GPUS)
        except RuntimeError as error:
            return [str(error)]
