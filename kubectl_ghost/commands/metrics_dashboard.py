"""`kubectl ghost metrics dashboard`."""

from __future__ import annotations

import click

from kubectl_ghost.commands.series_label_option import label_option
from kubectl_ghost.conventions.command import GhostCommand

_EPILOG = """\b
Examples:
  # A file to import into Grafana
  kubectl ghost metrics dashboard > gpu-fleet.json

\b
  # For the sidecar of Grafana's Helm chart, which finds dashboards by a label
  kubectl ghost metrics dashboard -o configmap | kubectl apply -n monitoring -f -
"""


@click.command(cls=GhostCommand, name="dashboard", epilog=_EPILOG)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json", "configmap"]),
    default="json",
    show_default=True,
    help="The dashboard, or a ConfigMap that holds it",
)
@label_option
def command(output: str, names: tuple[str, ...]) -> None:
    """Print a Grafana dashboard of the fleet.

    It is about dcgm-exporter's series, so it serves real GPUs as well: utilisation as maps of heat, who holds what,
    memory, power, temperature, clocks, MIG instances, XIDs, and the alerts of metrics rules that fire.
    """
    from kubectl_ghost.commands.output import write
    from kubectl_ghost.manifests.grafana_dashboard import dashboard_config_map, dashboard_text
    from kubectl_ghost.manifests.series_labels import renamed
    from kubectl_ghost.render.yaml_out import dump

    labels = renamed(names)
    write([dashboard_text(labels) if output == "json" else dump(dashboard_config_map(labels))])
