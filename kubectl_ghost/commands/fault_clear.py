"""`kubectl ghost fault clear`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import changing_options, waiting_options
from kubectl_ghost.conventions.progress import ProgressLine
from kubectl_ghost.conventions.targets import target_options
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.selection import Selection

if TYPE_CHECKING:
    from kubectl_ghost.cluster.writes import Writer

_EPILOG = """\b
Examples:
  # Everything that is wrong with a node and its GPUs
  kubectl ghost fault clear node-3

\b
  # XID 79 alone, wherever it is
  kubectl ghost fault clear --all --kind xid --code 79
"""


@click.command(cls=GhostCommand, name="clear", epilog=_EPILOG)
@target_options
@click.option("--kind", "kinds", multiple=True, help="Faults of this kind only (ecc: of all its types)")
@click.option("--code", type=int, help="Only the XID of this code")
@waiting_options
@changing_options
@click.pass_context
def command(
    context: click.Context,
    /,
    selection: Selection,
    kinds: tuple[str, ...],
    code: int | None,
    wait: bool,
    timeout: float,
    dry_run: DryRun,
    output: str | None,
) -> None:
    """Take faults away, with all that they brought about.

    A TARGET is a GPU, or a node for its own faults and those of all its GPUs. Devices and allocatable come back, and a
    node that was down becomes Ready. The metrics keep showing a GPU's last XID, as DCGM does, until it is rebooted.
    """
    from kubectl_ghost.commands.output import check_change_output
    from kubectl_ghost.commands.session import writer

    if code is not None and any(kind != "xid" for kind in kinds):
        raise click.UsageError("--code goes with --kind xid alone", context)
    check_change_output(output)
    _run(writer(context, dry_run, output), selection, kinds, code, timeout=timeout if wait else None, output=output)


def _run(
    connection: Writer,
    selection: Selection,
    kinds: tuple[str, ...],
    code: int | None,
    *,
    timeout: float | None,
    output: str | None,
) -> None:
    from kubectl_ghost.commands.output import print_changes
    from kubectl_ghost.domain.breaking import FaultFilter
    from kubectl_ghost.operations.change_hardware import end_what_is_over
    from kubectl_ghost.operations.fault import clear, kinds_of, plan_clear
    from kubectl_ghost.operations.fleet import OURS
    from kubectl_ghost.operations.waiting import wait_ready

    ended = list(end_what_is_over(connection))
    plan = plan_clear(connection, selection, FaultFilter(kinds_of(kinds), code))
    click.echo(f"Clearing {plan.summary}" if plan.chosen else "No faults found", err=True)
    print_changes(chain(ended, clear(connection, plan)), output, connection.dry_run)
    if timeout is not None and plan.comes_back and connection.dry_run is DryRun.NONE:
        with ProgressLine("nodes Ready") as progress:
            wait_ready(connection, OURS, plan.comes_back, timeout=timeout, progress=progress)
