"""Prometheus alert rules for the fault catalogue, over the series of dcgm-exporter."""

from __future__ import annotations

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests.idle_alert import idle_alert
from kubectl_ghost.manifests.series_labels import SeriesLabels
from kubectl_ghost.manifests.telemetry_alerts import telemetry_alerts
from kubectl_ghost.manifests.xid_alerts import xid_alerts


def rule_file(labels: SeriesLabels) -> Json:
    """The rules as Prometheus reads them from a file.

    Args:
        labels: under which names Prometheus keeps dcgm-exporter's labels.
    """
    return {
        "groups": [
            {"name": "gpu-xids", "rules": xid_alerts(labels)},
            {"name": "gpu-telemetry", "rules": telemetry_alerts(labels)},
            {"name": "gpu-idle", "rules": [idle_alert(labels)]},
        ]
    }


def prometheus_rule(labels: SeriesLabels) -> Json:
    """The same rules as an object of the Prometheus operator."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "kubectl-ghost-gpus", "labels": {keys.MANAGED_BY_LABEL: keys.MANAGED_BY}},
        "spec": rule_file(labels),
    }
