"""What the dashboard asks Prometheus: dcgm-exporter's series, of the nodes and models that are chosen in Grafana."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubectl_ghost.manifests.alert_rule import HELD_FIELD
from kubectl_ghost.manifests.promql import largest, selector
from kubectl_ghost.manifests.series_labels import SeriesLabels

NODE, MODEL, NAMESPACE = "node", "model", "namespace"
"""The dashboard's variables."""


@dataclass(frozen=True, slots=True)
class Queries:
    """PromQL over series with these labels."""

    labels: SeriesLabels

    def series(self, field: str, *matchers: str) -> str:
        """A field's series of what is chosen."""
        chosen = (f'{self.labels.node}=~"${NODE}"', f'{self.labels.model}=~"${MODEL}"')
        return selector(field, *chosen, *matchers)

    @property
    def node_name(self) -> str:
        """How a legend names a node."""
        return legend(self.labels.node)

    @property
    def device_name(self) -> str:
        """How a legend names a GPU or MIG instance."""
        return f"{self.node_name} GPU {legend(self.labels.gpu)} {legend(self.labels.instance)}"

    @property
    def pod_name(self) -> str:
        """How a legend names a pod."""
        return f"{legend(self.labels.namespace)}/{legend(self.labels.pod)}"

    @property
    def taken(self) -> str:
        """Matcher of what any pod holds."""
        return f'{self.labels.pod}!=""'

    @property
    def held(self) -> tuple[str, str]:
        """Matchers of what a pod of the chosen namespaces holds."""
        return f'{self.labels.namespace}=~"${NAMESPACE}"', self.taken

    @property
    def split(self) -> str:
        """Matcher of MIG instances."""
        return f'{self.labels.instance}!=""'

    @property
    def of_pod(self) -> tuple[str, str]:
        """The labels of a pod."""
        return self.labels.namespace, self.labels.pod

    def gpu(self, field: str, *matchers: str) -> str:
        """A field of whole GPUs: one series a GPU, however it is split or shared."""
        return largest(self.labels.of_gpu, self.series(field, *matchers))

    def device(self, field: str, *matchers: str, of: Iterable[str] = ()) -> str:
        """A field of GPUs and MIG instances: one series each, or one for each of the further labels, too."""
        return largest((*self.labels.of_device, *of), self.series(field, *matchers))

    def utilization(self, *matchers: str, of: Iterable[str] = ()) -> str:
        """Percent of each device: GPU_UTIL is absent in MIG mode, where the engine's activity is measured instead."""
        activity = self.device("DCGM_FI_PROF_GR_ENGINE_ACTIVE", self.split, *matchers, of=of)
        return f"({self.device('DCGM_FI_DEV_GPU_UTIL', *matchers, of=of)} or 100 * {activity})"

    def present(self, *matchers: str) -> str:
        """One series for each GPU that reports."""
        return f"count by ({self.labels.node}, {self.labels.uuid}) ({self.series(HELD_FIELD, *matchers)})"

    def free(self) -> str:
        """One series for each GPU that reports and of which no pod holds any part."""
        return f"({self.present()} unless on ({self.labels.uuid}) {self.present(self.taken)})"

    def by_node(self, field: str) -> str:
        """The largest value of a field on each node: its worst GPU's, or its hottest one's."""
        return largest([self.labels.node], self.series(field))

    def rate(self, field: str, *matchers: str) -> str:
        """What a counter of whole GPUs rises by in a second."""
        return largest(self.labels.of_gpu, f"rate({self.series(field, *matchers)}[$__rate_interval])")


def total(by: Iterable[str], expression: str) -> str:
    """The sum for each set of labels."""
    return f"sum by ({', '.join(by)}) ({expression})"


def average(by: Iterable[str], expression: str) -> str:
    """The mean for each set of labels."""
    return f"avg by ({', '.join(by)}) ({expression})"


def number_of(expression: str, by: Iterable[str] = ()) -> str:
    """How many series there are, zero if none."""
    labels = ", ".join(by)
    return f"count by ({labels}) ({expression})" if labels else f"count({expression}) or vector(0)"


def legend(label: str) -> str:
    """A label's value in the legend of a panel."""
    return f"{{{{{label}}}}}"
