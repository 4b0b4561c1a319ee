"""`kubectl ghost sync`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.durations import DURATION
from kubectl_ghost.conventions.flags import changing_options
from kubectl_ghost.domain.dry_run import DryRun

if TYPE_CHECKING:
    from kubectl_ghost.cluster.writes import Writer
    from kubectl_ghost.domain.errors import GhostError
    from kubectl_ghost.domain.requests import RebootSigns
    from kubectl_ghost.operations.adoption import Template

_EPILOG = """\b
Examples:
  # Repair what was changed by hand or left half done
  kubectl ghost sync

\b
  # Go on answering: MIG layouts asked for by label, reboots, faults that end
  kubectl ghost sync --watch

\b
  # A remediation tool that announces reboots by a condition of its own
  kubectl ghost sync --watch --reboot-condition RebootInProgress --reboot-time 10s

\b
  # Give the GPUs of pool gpu to the kwok nodes that an autoscaler creates
  kubectl ghost sync --watch --template gpu -l autoscaler=group-1
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@click.option("-w", "--watch", is_flag=True, help="After that, go on answering what real node agents would")
@click.option(
    "--reboot-annotation",
    "annotations",
    multiple=True,
    metavar="KEY",
    help="With this annotation a drained node reboots; kubectl-ghost.dev/reboot and kured's always do",
)
@click.option(
    "--reboot-condition",
    "conditions",
    multiple=True,
    metavar="TYPE",
    help="While this condition is True, a node that is cordoned and drained reboots",
)
@click.option(
    "--reboot-time", "seconds", type=DURATION, default="30s", show_default=True, help="How long such a reboot takes"
)
@click.option("--template", "pool", metavar="POOL", help="Give GPUs as in this pool to nodes that match --selector")
@click.option("-l", "--selector", help="With --template: which simulated nodes of others get GPUs (label query)")
@changing_options
@click.pass_context
def command(
    context: click.Context,
    /,
    watch: bool,
    annotations: tuple[str, ...],
    conditions: tuple[str, ...],
    seconds: float,
    pool: str | None,
    selector: str | None,
    dry_run: DryRun,
    output: str | None,
) -> None:
    """Bring every node back to its declared hardware.

    Repairs labels, capacity, taints and ResourceSlices that were changed or left half written, makes the nodes that
    a pool is missing, takes away slices whose node is gone, and records which GPUs the pods of the device-plugin
    path have. Ends faults whose time has passed and answers MIG layouts and reboots that were asked for by label,
    annotation (each new value asks once) or condition; with --watch it goes on doing so until it is interrupted.

    With --template, simulated nodes that somebody else creates get GPUs, too, and nothing but GPUs. They keep their
    names, deleting them is left to whoever made them, and delete-pool POOL gives them back as they were.
    """
    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import warn, writer
    from kubectl_ghost.domain.requests import RebootSigns
    from kubectl_ghost.operations.adoption import Template
    from kubectl_ghost.operations.sync import sync

    check_change_output(output)
    if watch and (dry_run is not DryRun.NONE or output not in (None, "name")):
        raise click.UsageError("--watch goes with neither --dry-run nor an output format but name", context)
    if bool(pool) != bool(selector):
        raise click.UsageError("--template and --selector go together: which GPUs, and which nodes get them", context)
    template = Template(pool, selector) if pool and selector else None
    standard = RebootSigns()
    signs = RebootSigns((*standard.annotations, *annotations), (*standard.conditions, *conditions))
    connection = writer(context, dry_run, output)
    warnings: list[str] = []
    print_changes(sync(connection, warnings, signs, seconds, template), output, dry_run)
    warn(warnings)
    if watch:
        _follow(connection, signs, seconds, output, template)


def _follow(
    connection: Writer, signs: RebootSigns, seconds: float, output: str | None, template: Template | None
) -> None:
    from kubectl_ghost.commands.output import print_changes
    from kubectl_ghost.operations.watch_fleet import watch_fleet

    def problem(error: GhostError) -> None:
        click.echo(f"Warning: {error.message}", err=True)

    click.echo("Watching; Ctrl-C ends it", err=True)
    sys.stdout.flush()
    for change in watch_fleet(connection, signs, seconds, problem=problem, template=template):
        print_changes([change], output, DryRun.NONE)
        sys.stdout.flush()
