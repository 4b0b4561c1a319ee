"""`kubectl ghost mig-split`."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import changing_options
from kubectl_ghost.conventions.targets import target_options
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.selection import Selection

_EPILOG = """\b
Examples:
  # Split one H100 into four instances; each goes where the driver would put it
  kubectl ghost mig-split node-1/gpu-0 --profiles 3g.40gb,2g.20gb,1g.10gb*2

\b
  # Say where: the instance starts at memory slice 4
  kubectl ghost mig-split node-1/gpu-1 --profiles 3g.40gb:4

\b
  # All GPUs of a pool, by the name of mig-parted's configuration
  kubectl ghost mig-split --pool train --config all-1g.10gb

\b
  # Whole GPUs again; pods that hold instances are evicted
  kubectl ghost mig-split --pool train --off --force
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@target_options
@click.option("--profiles", metavar="LIST", help="MIG profiles of each GPU, such as 3g.40gb,2g.20gb,1g.10gb*2")
@click.option("--config", metavar="NAME", help="A configuration of mig-parted's, such as all-balanced or all-1g.10gb")
@click.option("--off", is_flag=True, help="Switch MIG off: whole GPUs again")
@click.option("--force", is_flag=True, help="Evict the pods that hold these GPUs, and release GPUs declared busy")
@changing_options
@click.pass_context
def command(
    context: click.Context,
    /,
    selection: Selection,
    profiles: str | None,
    config: str | None,
    off: bool,
    force: bool,
    dry_run: DryRun,
    output: str | None,
) -> None:
    """Split simulated GPUs into MIG devices, as the administrator of a real node does.

    TARGET is a node (all of its GPUs) or a GPU, such as node-1/gpu-0. The GPU disappears and its instances appear, in
    ResourceSlices, in the node's capacity and in its labels. GPUs that pods hold are not split unless --force is given.
    The label nvidia.com/mig.config then reads as the configuration given, all-disabled, or "custom".
    """
    from itertools import chain

    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import warn, writer
    from kubectl_ghost.domain.splitting import SplitRequest
    from kubectl_ghost.operations.change_hardware import end_what_is_over
    from kubectl_ghost.operations.mig_split import apply_split, plan_split
    from kubectl_ghost.operations.selecting import check_selection

    if [profiles is not None, config is not None, off].count(True) != 1:
        raise click.UsageError("give one of --profiles, --config and --off", context)
    if profiles is not None and not profiles.strip():
        raise click.UsageError("--profiles is empty; for whole GPUs, use --off", context)
    check_change_output(output)
    check_selection(selection)
    connection = writer(context, dry_run, output)
    ended = list(end_what_is_over(connection))
    plan = plan_split(connection, selection, SplitRequest(profiles, config), force=force)
    click.echo(plan.summary, err=True)
    warn(plan.warnings)
    print_changes(chain(ended, apply_split(connection, plan)), output, dry_run)
