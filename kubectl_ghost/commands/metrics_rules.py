"""`kubectl ghost metrics rules`."""

from __future__ import annotations

import click

from kubectl_ghost.commands.series_label_option import label_option
from kubectl_ghost.conventions.command import GhostCommand

_EPILOG = """\b
Examples:
  # A rule file for Prometheus, and every field that it looks at
  kubectl ghost metrics rules > gpu-rules.yaml
  kubectl ghost metrics serve --fields default,ecc,nvlink,violations,clock-events

\b
  # The same for the Prometheus operator, where a ServiceMonitor does not honour the exporter's labels
  kubectl ghost metrics rules -o prometheusrule --label pod=exported_pod --label namespace=exported_namespace \\
    --label container=exported_container | kubectl apply -f -
"""


@click.command(cls=GhostCommand, name="rules", epilog=_EPILOG)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["rules", "prometheusrule"]),
    default="rules",
    show_default=True,
    help="A rule file, or an object of the Prometheus operator",
)
@label_option
def command(output: str, names: tuple[str, ...]) -> None:
    """Print alert rules for the faults that the fault catalogue knows, as YAML.

    They are about dcgm-exporter's series, so they serve real GPUs as well: an alert for each recovery that NVIDIA's
    catalogue of XIDs names, alerts for what telemetry shows (throttling, memory, links, stragglers, GPUs and nodes
    that are lost), and one for GPUs that are held and idle. Some are silent unless fields are exported that
    dcgm-exporter does not print by default.
    """
    from kubectl_ghost.commands.output import write
    from kubectl_ghost.manifests.prometheus_rules import prometheus_rule, rule_file
    from kubectl_ghost.manifests.series_labels import renamed
    from kubectl_ghost.render.yaml_out import dump

    made = rule_file if output == "rules" else prometheus_rule
    write([dump(made(renamed(names)))])
