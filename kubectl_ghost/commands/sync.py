"""`kubectl ghost sync`."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import changing_options
from kubectl_ghost.domain.dry_run import DryRun


@click.command(cls=GhostCommand)
@changing_options
@click.pass_context
def command(context: click.Context, dry_run: DryRun, output: str | None) -> None:
    """Bring every node back to its declared hardware.

    Repairs labels, capacity, taints and ResourceSlices that were changed or left half written, makes the nodes that
    a pool is missing, takes away slices whose node is gone, and records which GPUs the pods of the device-plugin
    path have.
    """
    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import warn, writer
    from kubectl_ghost.operations.sync import sync

    check_change_output(output)
    connection = writer(context, dry_run)
    warnings: list[str] = []
    print_changes(sync(connection, warnings), output, dry_run)
    warn(warnings)
