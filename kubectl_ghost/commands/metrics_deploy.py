"""`kubectl ghost metrics deploy`."""

from __future__ import annotations

from typing import Any

import click

from kubectl_ghost.commands.agent_pod import pod_options
from kubectl_ghost.commands.metrics_options import series_options
from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import changing_options, waiting_options
from kubectl_ghost.domain.dry_run import DryRun

_EPILOG = """\b
Examples:
  # A pod on a real node that serves the metrics for an hour, and that Prometheus finds by its annotations
  kubectl ghost metrics deploy

\b
  # For a working day, with an image from your own registry
  kubectl ghost metrics deploy --ttl 8h --image registry.example.com/python:3.13

\b
  # See what would be made
  kubectl ghost metrics deploy --dry-run=client -o yaml
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@pod_options
@series_options
@waiting_options
@changing_options
@click.pass_context
def command(
    context: click.Context,
    /,
    ttl: float,
    image: str | None,
    read_only: bool,
    wait: bool,
    timeout: float,
    dry_run: DryRun,
    output: str | None,
    **series: Any,
) -> None:
    """Serve the metrics from a short-lived pod on a real node of the cluster.

    Needs no image of this tool: the agent travels in a ConfigMap and runs on a stock Python. Everything lies in the
    namespace kubectl-ghost-metrics, but for a ClusterRole and its binding. Run again with other flags, the agent is
    replaced; with the same ones it is left alone, and lives no longer than it would have.
    """
    from kubectl_ghost.commands.agent_pod import agent_pod, wait_for_agent
    from kubectl_ghost.commands.metrics_options import agent_options
    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import announce, writer
    from kubectl_ghost.domain.errors import GhostError
    from kubectl_ghost.operations.agent_deploy import deploy_agent, find_agent, real_nodes

    check_change_output(output)
    wanted = agent_pod(agent_options(read_only=read_only, **series), ttl, image)
    connection = writer(context, dry_run, output)
    nodes = real_nodes(connection)
    if not nodes:
        raise GhostError(
            "no node can run the agent: those of this cluster are simulated, not Ready, or take no pods",
            "kubectl ghost metrics serve serves the same from this machine.",
        )
    if dry_run is DryRun.NONE and find_agent(connection) is None:
        announce(context)
    print_changes(deploy_agent(connection, wanted, nodes), output, dry_run)
    if wait and dry_run is DryRun.NONE:
        wait_for_agent(connection, timeout)
