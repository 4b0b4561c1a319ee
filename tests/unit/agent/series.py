"""A scrape as Prometheus' own parser for Python reads it."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

POD_LABELS = {"pod", "namespace", "container", "vgpu"}
UTIL = "DCGM_FI_DEV_GPU_UTIL"


@dataclass(frozen=True)
class Series:
    """One series; `key` is what no other series has."""

    name: str
    labels: dict[str, str]
    value: float

    @property
    def key(self):
        return self.name, tuple(sorted(self.labels.items()))

    @property
    def uuid(self):
        return self.labels["UUID"]

    @property
    def gpu(self):
        """Node, index, profile and number of the device; the latter two are empty for a whole GPU."""
        labels = self.labels
        return labels["Hostname"], int(labels["gpu"]), labels.get("GPU_I_PROFILE", ""), labels.get("GPU_I_ID", "")

    @property
    def user(self):
        """Namespace, pod, container and replica of who has the device; empty for nobody."""
        return tuple(self.labels.get(name, "") for name in ("namespace", "pod", "container", "vgpu"))


def read(text):
    """Every series of a scrape, in its order.

    The parser calls counters what OpenMetrics would call them; dcgm-exporter's names do not end so.
    """
    return [
        Series(sample.name.removesuffix("_total"), sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def named(text, name):
    """The series of one field."""
    return [series for series in read(text) if series.name == name]


def values(text, name):
    """One field's values by device."""
    return {series.gpu: series.value for series in named(text, name)}


def users(text, name="DCGM_FI_DEV_POWER_USAGE"):
    """Who has which device: by device, the (namespace, pod, container, replica) of each, nobody if it is free."""
    found = {}
    for series in named(text, name):
        found.setdefault(series.gpu, []).append(series.user)
    return {gpu: [user for user in held if any(user)] for gpu, held in found.items()}


def names(text):
    """The names of all fields that are there, in their order."""
    return list(dict.fromkeys(series.name for series in read(text)))
