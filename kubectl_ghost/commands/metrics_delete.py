"""`kubectl ghost metrics delete`."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import changing_options, waiting_options
from kubectl_ghost.domain.dry_run import DryRun

_EPILOG = """\b
Examples:
  # Take away what `metrics deploy` has made
  kubectl ghost metrics delete
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@waiting_options
@changing_options
@click.pass_context
def command(context: click.Context, /, wait: bool, timeout: float, dry_run: DryRun, output: str | None) -> None:
    """Delete the metrics agent's pod and everything that was made for it."""
    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import writer
    from kubectl_ghost.conventions.messages import no_resources
    from kubectl_ghost.operations.agent_deploy import delete_agent, wait_until_deleted

    check_change_output(output)
    connection = writer(context, dry_run, output)
    if not print_changes(delete_agent(connection), output, dry_run):
        click.echo(no_resources(), err=True)
    if wait and dry_run is DryRun.NONE:
        wait_until_deleted(connection, timeout=timeout)
