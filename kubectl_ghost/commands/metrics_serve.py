"""`kubectl ghost metrics serve`."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import click

from kubectl_ghost.commands.listening import listening_options, metrics_url
from kubectl_ghost.commands.metrics_options import series_options
from kubectl_ghost.conventions.command import GhostCommand

if TYPE_CHECKING:
    from ghost_agent.options import AgentOptions

_EPILOG = """\b
Examples:
  # http://localhost:9400/metrics of all nodes, /nodes/node-0/metrics of one, /sd for Prometheus
  kubectl ghost metrics serve

\b
  # With ECC and profiling fields, under the label names of dcgm-exporter -o
  kubectl ghost metrics serve --fields default,ecc,profiling --compat old-namespace

\b
  # The second of four processes that share a large fleet
  kubectl ghost metrics serve --shard 2/4 --port 9401
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@listening_options
@click.option("--shard", default="", metavar="N/TOTAL", help="Serve this part of the nodes alone")
@click.option("--read-only", is_flag=True, help="Do not record on pods which GPUs they have")
@series_options
@click.pass_context
def command(context: click.Context, /, port: int, address: str, shard: str, read_only: bool, **series: Any) -> None:
    """Serve the metrics from this process until it is interrupted.

    Needs no real node in the cluster. Every series carries the pod that the scheduler gave the GPU to; which GPUs a
    pod of the device-plugin path has is recorded on the pod, as fault and sync do it.
    """
    from kubectl_ghost.commands.metrics_options import agent_options

    serve_here(context, agent_options(shard=shard, read_only=read_only, **series), address, port)


def serve_here(context: click.Context, options: AgentOptions, address: str, port: int) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Raises:
        GhostError: the port cannot be had, or the cluster not be read at the beginning.
    """
    from ghost_agent.agent import Agent
    from ghost_agent.watcher import Expired
    from kubectl_ghost.commands.session import writer
    from kubectl_ghost.operations.agent_reader import AgentReader

    def problem(text: str) -> None:
        click.echo(f"Warning: {text}", err=True)

    connection = writer(context)
    agent = Agent(AgentReader(connection, Expired), options, address=address, port=port, problem=problem)
    # Asked once in the foreground, so that a cluster that cannot be read is told at once, with an exit code.
    agent.watcher.list_once()
    agent.start()
    with contextlib.suppress(OSError):
        click.echo(f"Serving on {metrics_url(address, agent.server.port)}; Ctrl-C ends it", err=True)
    ended = threading.Thread(target=agent.serve, daemon=True)
    ended.start()
    # As kubectl's port-forward: being interrupted is how it ends, not how it fails.
    with contextlib.suppress(KeyboardInterrupt):
        ended.join()
