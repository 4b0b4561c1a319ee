"""`kubectl ghost metrics print`."""

from __future__ import annotations

from typing import Any

import click

from kubectl_ghost.commands.metrics_options import series_options
from kubectl_ghost.conventions.command import GhostCommand

_EPILOG = """\b
Examples:
  # What a scrape of all nodes would get
  kubectl ghost metrics print

\b
  # Utilisation of one node's GPUs, and who has them
  kubectl ghost metrics print --node node-3 --fields DCGM_FI_DEV_GPU_UTIL
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@click.option("--node", metavar="NAME", help="Of this node alone")
@series_options
@click.pass_context
def command(context: click.Context, /, node: str | None, **series: Any) -> int:
    """Print what a scrape would get now, in Prometheus' text format. Nothing is written to the cluster."""
    from ghost_agent.fleet import Fleet
    from ghost_agent.snapshot import Snapshot
    from ghost_agent.watcher import Expired, Watcher
    from kubectl_ghost.commands.metrics_options import agent_options
    from kubectl_ghost.commands.output import write
    from kubectl_ghost.commands.session import warn, writer
    from kubectl_ghost.conventions.messages import not_found
    from kubectl_ghost.domain.errors import GhostError
    from kubectl_ghost.operations.agent_reader import AgentReader

    options = agent_options(**series)
    problems: list[str] = []
    fleet = Fleet(pod_labels="pod-labels" in options.compatibility)
    Watcher(AgentReader(writer(context), Expired), fleet, problem=problems.append).list_once()
    snapshot = Snapshot(fleet, options, problem=problems.append)
    try:
        if node is not None and not snapshot.node(node).answers:
            raise GhostError(f"node {node} is down or its driver does not answer", "See: kubectl ghost get faults")
        pieces = snapshot.text(node)
    except KeyError:
        click.echo(not_found("nodes", str(node)), err=True)
        return 1
    write(pieces)
    warn(problems)
    return 0
