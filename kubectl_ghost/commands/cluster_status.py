"""`kubectl ghost cluster status`."""

from __future__ import annotations

import click

from kubectl_ghost.commands.cluster_options import NAME
from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.domain.errors import GhostError


@click.command(cls=GhostCommand, name="status")
@NAME
@click.pass_context
def command(context: click.Context, name: str) -> None:
    """Show a cluster's components. The exit code is 1 unless all of them are well."""
    from kubectl_ghost.engine.folders import Folders
    from kubectl_ghost.engine.status import inspect
    from kubectl_ghost.render.columns import NONE, aligned

    details = inspect(name, Folders.of_user())
    if details is None:
        raise GhostError(f'no cluster "{name}"', f"create it with: kubectl ghost cluster up --name {name}")
    for label, value in (
        ("Cluster", name),
        ("Status", details.summary.status),
        ("Version", details.summary.version),
        ("Server", details.summary.server or NONE),
        ("Kubeconfig", details.kubeconfig),
    ):
        click.echo(f"{label + ':':12}{value}")
    if details.components:
        columns = {
            "COMPONENT": [component.name for component in details.components],
            "PID": [str(component.pid or NONE) for component in details.components],
            "HEALTH": [component.fault or "Healthy" for component in details.components],
        }
        click.echo()
        click.echo("".join(aligned([[title, *cells] for title, cells in columns.items()])), nl=False)
    if not details.ready:
        context.exit(ExitCode.ERROR)
