"""`kubectl ghost release`."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import changing_options
from kubectl_ghost.conventions.targets import target_options
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.domain.wording import counted

_EPILOG = """\b
Examples:
  # The GPUs of one node that were occupied are free again
  kubectl ghost release node-1

\b
  # Everything that `occupy` has done is undone
  kubectl ghost release --all
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@target_options
@changing_options
@click.pass_context
def command(
    context: click.Context,
    /,
    selection: Selection,
    dry_run: DryRun,
    output: str | None,
) -> None:
    """Free GPUs that `kubectl ghost occupy` has made busy.

    TARGET is a GPU (node-3/gpu-2), or a node for all of its GPUs. GPUs that are not occupied, and pods that are not
    this tool's, are left as they are.
    """
    from itertools import chain

    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import writer
    from kubectl_ghost.conventions.messages import no_resources
    from kubectl_ghost.operations.change_hardware import end_what_is_over
    from kubectl_ghost.operations.release import apply_release, plan_release
    from kubectl_ghost.operations.selecting import check_selection

    check_change_output(output)
    check_selection(selection)
    connection = writer(context, dry_run, output)
    ended = list(end_what_is_over(connection))
    plan = plan_release(connection, selection)
    changes = print_changes(chain(ended, apply_release(connection, plan)), output, dry_run)
    if plan.gpus:
        where = f"{counted(plan.gpus, 'GPU')} on {counted(plan.nodes, 'node')}"
        click.echo(f"{where} {_verb(plan.gpus, dry_run)} released", err=True)
    elif not changes:
        click.echo(no_resources(), err=True)


def _verb(number: int, dry_run: DryRun) -> str:
    if dry_run is not DryRun.NONE:
        return "would be"
    return "is" if number == 1 else "are"
