"""`kubectl ghost delete-pool`."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import changing_options, waiting_options
from kubectl_ghost.domain.dry_run import DryRun

_EPILOG = """\b
Examples:
  # Delete a pool with its nodes, slices and the pods on them
  kubectl ghost delete-pool train

\b
  # Delete everything that this tool made
  kubectl ghost delete-pool --all
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Delete all pools")
@click.option("--ignore-not-found", is_flag=True, help='Treat "pool not found" as a successful delete')
@waiting_options
@changing_options
@click.pass_context
def command(
    context: click.Context,
    /,
    names: tuple[str, ...],
    everything: bool,
    ignore_not_found: bool,
    wait: bool,
    timeout: float,
    dry_run: DryRun,
    output: str | None,
) -> None:
    """Delete pools with their nodes, their slices and the pods on them.

    Nodes of somebody else that got GPUs by `sync --template` are given back as they were, without the pods that hold
    those GPUs.
    """
    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import warn, writer
    from kubectl_ghost.commands.waiting import wait_for_deletion
    from kubectl_ghost.conventions.messages import no_resources
    from kubectl_ghost.operations.delete_pool import delete_pools, select_pools

    if bool(names) == everything:
        raise click.UsageError("name the pools to delete, or pass --all (not both)", context)
    check_change_output(output)
    connection = writer(context, dry_run, output)
    warnings: list[str] = []
    what = select_pools(connection, names, warnings, everything=everything, ignore_missing=ignore_not_found)
    if not what:
        click.echo(no_resources(), err=True)
    changes = print_changes(delete_pools(connection, what, warnings), output, dry_run)
    warn(warnings)
    if wait and dry_run is DryRun.NONE:
        wait_for_deletion(connection, changes, timeout)
