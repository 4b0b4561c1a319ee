"""What the agent says about itself on /internal/metrics, apart from the fleet's metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ghost_agent.snapshot import Snapshot
from ghost_agent.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class SelfMetrics:
    """The agent's own metrics: a registry apart from the process-wide one."""

    def __init__(self, watcher: Watcher, snapshot: Snapshot) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Collector(lambda: _families(watcher, snapshot)))
        self.scrape_seconds = Histogram(
            "ghost_agent_scrape_duration_seconds",
            "Time it took to answer a scrape.",
            ["path"],
            registry=self._registry,
        )

    def text(self) -> bytes:
        """The exposition."""
        return generate_latest(self._registry)


class _Collector:
    """prometheus_client asks it at every scrape."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families()


def _families(watcher: Watcher, snapshot: Snapshot) -> Iterator[Metric]:
    nodes = snapshot.nodes()
    yield GaugeMetricFamily("ghost_agent_nodes", "Simulated nodes that are served.", value=len(nodes))
    yield GaugeMetricFamily("ghost_agent_gpus", "GPUs with series.", value=sum(len(node.gpus) for node in nodes))
    yield GaugeMetricFamily("ghost_agent_series", "Series of the last scrape of all nodes.", value=snapshot.series)
    yield GaugeMetricFamily(
        "ghost_agent_snapshot_age_seconds", "Time since the cluster was last heard of.", value=watcher.age()
    )
    yield CounterMetricFamily(
        "ghost_agent_watch_restarts", "How often a collection had to be listed again.", value=watcher.restarts
    )
    problems = GaugeMetricFamily(
        "ghost_agent_load_problems",
        "Annotations of a pod about its load that are not understood.",
        labels=["node", "namespace", "pod"],
    )
    for node in nodes:
        for name in sorted({pod for pod, _ in node.problems}):
            namespace, _, pod = name.partition("/")
            problems.add_metric([node.name, namespace, pod], sum(found == name for found, _ in node.problems))
    yield problems
