"""`kubectl ghost scale-pool`."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import allow_mixed_option, changing_options, waiting_options
from kubectl_ghost.domain.dry_run import DryRun

_EPILOG = """\b
Examples:
  # Grow the default pool to ten nodes
  kubectl ghost scale-pool node 10

\b
  # The same, as kubectl scale spells it
  kubectl ghost scale-pool node --replicas=10
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@click.argument("name")
@click.argument("count", type=int, required=False)
@click.option("--replicas", type=int, help="The new number of nodes")
@allow_mixed_option
@waiting_options
@changing_options
@click.pass_context
def command(
    context: click.Context,
    /,
    name: str,
    count: int | None,
    replicas: int | None,
    allow_mixed: bool,
    wait: bool,
    timeout: float,
    dry_run: DryRun,
    output: str | None,
) -> None:
    """Set the number of nodes of a pool.

    A shrinking pool loses its nodes of the highest numbers, with the pods on them.
    """
    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import warn, writer
    from kubectl_ghost.commands.waiting import wait_for_deletion, wait_for_nodes
    from kubectl_ghost.operations.scale_pool import plan_scale, scale

    if (count is None) == (replicas is None):
        raise click.UsageError("give the number of nodes once: scale-pool NAME COUNT, or --replicas=COUNT", context)
    size = count if count is not None else replicas
    assert size is not None
    check_change_output(output)
    connection = writer(context, dry_run, output)
    plan = plan_scale(connection, name, size, allow_mixed=allow_mixed)
    changes = print_changes(scale(connection, plan), output, dry_run)
    warn(plan.grow.warnings)
    if wait and dry_run is DryRun.NONE:
        wait_for_nodes(connection, name, changes, timeout)
        wait_for_deletion(connection, changes, timeout)
