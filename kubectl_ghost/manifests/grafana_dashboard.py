"""A Grafana dashboard of a GPU fleet, over the series of dcgm-exporter."""

from __future__ import annotations

import json

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests import grafana_health as health
from kubectl_ghost.manifests import grafana_usage as usage
from kubectl_ghost.manifests.alert_rule import HELD_FIELD
from kubectl_ghost.manifests.grafana_panels import DATASOURCE, laid_out
from kubectl_ghost.manifests.grafana_queries import MODEL, NAMESPACE, NODE, Queries
from kubectl_ghost.manifests.promql import selector
from kubectl_ghost.manifests.series_labels import SeriesLabels

_NAME = "kubectl-ghost-gpus"
_SCHEMA = 41
"""Grafana 11.6's version of the JSON model; newer releases read it and bring it up to date."""


def dashboard(labels: SeriesLabels) -> Json:
    """The dashboard as Grafana imports it.

    Args:
        labels: under which names Prometheus keeps dcgm-exporter's labels.
    """
    queries = Queries(labels)
    sections = (
        usage.fleet(queries),
        usage.utilization(queries),
        usage.pods(queries),
        health.faults(queries),
        health.conditions(queries),
        usage.mig(queries),
        health.clocks(queries),
    )
    return {
        "uid": _NAME,
        "title": "GPU fleet",
        "tags": ["gpu", "dcgm", "kubernetes"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables(labels)},
        "panels": laid_out(sections),
    }


def dashboard_text(labels: SeriesLabels) -> str:
    """The dashboard as a file to import."""
    return json.dumps(dashboard(labels), indent=2) + "\n"


def dashboard_config_map(labels: SeriesLabels) -> Json:
    """A ConfigMap with the dashboard, labelled for the sidecar of Grafana's Helm chart."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _NAME, "labels": {keys.MANAGED_BY_LABEL: keys.MANAGED_BY, "grafana_dashboard": "1"}},
        "data": {"gpu-fleet.json": dashboard_text(labels)},
    }


def _variables(labels: SeriesLabels) -> list[Json]:
    datasource: Json = {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus"}
    of_node = f'{labels.node}=~"${NODE}"'
    return [
        datasource,
        _variable(NODE, "Node", HELD_FIELD, labels.node),
        _variable(MODEL, "GPU model", selector(HELD_FIELD, of_node), labels.model),
        _variable(NAMESPACE, "Namespace", selector(HELD_FIELD, of_node), labels.namespace),
    ]


def _variable(name: str, title: str, series: str, label: str) -> Json:
    query = f"label_values({series}, {label})"
    return {
        "type": "query",
        "name": name,
        "label": title,
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "multi": True,
        "includeAll": True,
        # Matches what lacks the label, too: a GPU that nobody holds has no namespace.
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
        # 2: whenever the time that is shown changes, since nodes and pods come and go. 1: by name.
        "refresh": 2,
        "sort": 1,
    }
