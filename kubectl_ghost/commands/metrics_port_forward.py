"""`kubectl ghost metrics port-forward`."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kubectl_ghost.commands.agent_pod import pod_options
from kubectl_ghost.commands.listening import listening_options, metrics_url
from kubectl_ghost.commands.metrics_options import series_options
from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.durations import DURATION
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError

if TYPE_CHECKING:
    from kubectl_ghost.cluster.writes import Writer

_EPILOG = """\b
Examples:
  # http://localhost:9400/metrics, until Ctrl-C
  kubectl ghost metrics port-forward

\b
  # On another port
  kubectl ghost metrics port-forward --port 9401
"""
_WHERE = ("port", "address", "timeout")
"""Flags that say nothing about the agent."""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@listening_options
@pod_options
@series_options
@click.option("--timeout", type=DURATION, default="5m", show_default=True, help="How long the pod may take to be Ready")
@click.pass_context
def command(
    context: click.Context,
    /,
    port: int,
    address: str,
    ttl: float,
    image: str | None,
    read_only: bool,
    timeout: float,
    **series: Any,
) -> None:
    """Serve the metrics on a port of this machine until Ctrl-C.

    They come from the agent's pod on a real node: from one that runs already, which is left alone in the end, or from
    one that is made, as by `metrics deploy`, and deleted with all that belongs to it. Where no real node can run it,
    they are served from this process.
    """
    from kubectl_ghost.commands.agent_pod import agent_pod
    from kubectl_ghost.commands.metrics_options import agent_options
    from kubectl_ghost.commands.metrics_serve import serve_here
    from kubectl_ghost.commands.output import print_changes
    from kubectl_ghost.commands.session import announce, writer
    from kubectl_ghost.commands.users_kubectl import users_kubectl
    from kubectl_ghost.operations.agent_deploy import deploy_agent, find_agent, is_as_asked, real_nodes

    options = agent_options(read_only=read_only, **series)
    _refuse_taken_port(address, port)
    connection = writer(context)
    wanted = agent_pod(options, ttl, image)
    running = find_agent(connection)
    if running is not None and _asks_for_something(context) and not is_as_asked(running, wanted):
        raise GhostError(
            "an agent with other options runs already",
            "Leave the options out to use it as it is, or give the same ones to: kubectl ghost metrics deploy",
        )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    nodes = real_nodes(connection) if running is None else []
    if running is None and not nodes:
        click.echo("No node of this cluster can run the agent's pod: serving from this process instead", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            serve_here(context, options, address, port)
        return
    kubectl = users_kubectl(context)
    if running is not None:
        _forward(connection, kubectl, address, port, timeout)
        return
    announce(context)
    with _deleted_in_the_end(connection):
        print_changes(deploy_agent(connection, wanted, nodes), None, DryRun.NONE)
        _forward(connection, kubectl, address, port, timeout)


def _forward(connection: Writer, kubectl: list[str], address: str, port: int, timeout: float) -> None:
    """Forward to the agent until Ctrl-C."""
    from kubectl_ghost.commands.agent_pod import wait_for_agent
    from kubectl_ghost.commands.port_forwarding import forward
    from kubectl_ghost.commands.session import warn
    from kubectl_ghost.domain.keys import AGENT_NAME, AGENT_NAMESPACE
    from kubectl_ghost.manifests.agent import PORT
    from kubectl_ghost.operations.agent_waiting import why_over

    def listening(local: int) -> None:
        click.echo(f"Forwarding {metrics_url(address, local)} to pod/{AGENT_NAME}; Ctrl-C ends it", err=True)

    fixed = [*kubectl, "--namespace", AGENT_NAMESPACE, "port-forward", f"pod/{AGENT_NAME}", "--address", address]
    pod = wait_for_agent(connection, timeout)
    with contextlib.suppress(KeyboardInterrupt):
        forward(
            lambda local: [*fixed, f"{local or ''}:{PORT}"],
            port,
            why_over=lambda: why_over(connection, pod["metadata"]["uid"]),
            listening=listening,
            warn=lambda text: warn([text]),
        )


def _asks_for_something(context: click.Context) -> bool:
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    return bool(given - set(_WHERE))


def _refuse_taken_port(address: str, port: int) -> None:
    """Say so before anything is made. Who takes it between now and then makes kubectl say it."""
    if not port:
        return
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise GhostError(
                f"cannot listen on port {port} of {address}: {error.strerror}",
                "Choose another with --port, or any free one with --port 0.",
            ) from error


@contextlib.contextmanager
def _deleted_in_the_end(connection: Writer) -> Iterator[None]:
    """Whatever happens in between: Ctrl-C, SIGTERM, an error."""
    from kubectl_ghost.commands.output import print_changes
    from kubectl_ghost.operations.agent_deploy import delete_agent

    try:
        yield
    finally:
        # All of it before a word is printed: the terminal may be what has gone.
        print_changes(list(delete_agent(connection)), None, DryRun.NONE)
