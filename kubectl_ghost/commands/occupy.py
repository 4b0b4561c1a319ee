"""`kubectl ghost occupy`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import changing_options, waiting_options
from kubectl_ghost.conventions.progress import ProgressLine
from kubectl_ghost.conventions.targets import random_options, target_options
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.domain.wording import counted

if TYPE_CHECKING:
    from kubectl_ghost.operations.occupy import OccupyPlan, OccupyRequest

_EPILOG = """\b
Examples:
  # One GPU is busy, another two
  kubectl ghost occupy node-1/gpu-0
  kubectl ghost occupy node-2/gpu-0 node-2/gpu-1

\b
  # A fragmented fleet: so many GPUs of each node of the pool stay free
  kubectl ghost occupy --pool train --free 2,2,2,1

\b
  # Seven GPUs of ten are busy, drawn at random, each by a real pod
  kubectl ghost occupy --all --utilization 70% --seed 7 --with pods

\b
  # The same by pods that others preempt, in a pool of --advertise device-plugin
  kubectl ghost occupy --pool classic --utilization 70% --with pods --priority -10

\b
  # A part of a GPU, in a pool of --mig dynamic
  kubectl ghost occupy mig-0/gpu-0 --profiles 3g.40gb,1g.10gb
"""
_LOWEST_PRIORITY, _HIGHEST_PRIORITY = -(2**31), 1_000_000_000
"""What a PriorityClass of a user can have (k8s.io/api scheduling/v1, HighestUserDefinablePriority)."""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@target_options
@click.option(
    "--free",
    metavar="N,N,...",
    help="So many GPUs of each node, in order, are free then: others become busy, or free again",
)
@click.option("--utilization", metavar="PERCENT", help="So much of all GPUs is busy, those that pods hold included")
@random_options
@click.option(
    "--profiles", metavar="PROFILE,...", help="Only these parts of each GPU, such as 3g.40gb,1g.10gb*2 (--mig dynamic)"
)
@click.option(
    "--with",
    "with_",
    type=click.Choice(["taint", "pods"]),
    default="taint",
    show_default=True,
    help="Keep GPUs busy by a device taint and lowered allocatable, or by a real pod on each device",
)
@click.option(
    "--priority",
    type=click.IntRange(_LOWEST_PRIORITY, _HIGHEST_PRIORITY),
    metavar="N",
    help="With --with pods: the pods' priority (default 0); pods that hold a claimed device are never preempted",
)
@click.option("--force", is_flag=True, help="Evict pods that hold the GPUs")
@waiting_options
@changing_options
@click.pass_context
def command(
    context: click.Context,
    /,
    selection: Selection,
    free: str | None,
    utilization: str | None,
    number: int | None,
    seed: int,
    profiles: str | None,
    with_: str,
    priority: int | None,
    force: bool,
    wait: bool,
    timeout: float,
    dry_run: DryRun,
    output: str | None,
) -> None:
    """Make GPUs busy before any workload exists.

    TARGET is a GPU (node-3/gpu-2), or a node for all of its GPUs. Nothing is placed on a busy GPU until `kubectl ghost
    release`. GPUs that pods hold are left to them unless --force is given.
    """
    from itertools import chain

    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import warn, writer
    from kubectl_ghost.domain.hardware import OccupancyKind
    from kubectl_ghost.operations.change_hardware import end_what_is_over
    from kubectl_ghost.operations.filler_waiting import wait_for_fillers
    from kubectl_ghost.operations.occupy import OccupyRequest, apply_occupy, filler_names, plan_occupy
    from kubectl_ghost.operations.selecting import check_selection

    _check(context, free, utilization, number, profiles, with_, priority)
    check_change_output(output)
    if number is not None and not selection.names_any:
        # A number of GPUs at random needs no name: it is of the whole fleet then.
        selection = Selection(everything=True)
    request = OccupyRequest(
        selection,
        OccupancyKind(with_),
        None if free is None else _numbers(context, free),
        None if utilization is None else _percent(context, utilization),
        number,
        seed,
        profiles or "",
        priority,
        force,
    )
    connection = writer(context, dry_run, output)
    check_selection(selection)
    ended = list(end_what_is_over(connection))
    plan = plan_occupy(connection, request)
    if priority is not None and any(item.hardware.settings.advertise.slices for item in plan.chosen):
        warn(["the scheduler preempts no pod for a claimed device: of these nodes' fillers none will give way"])
    print_changes(chain(ended, apply_occupy(connection, plan)), output, dry_run)
    names = filler_names(plan)
    if wait and names and dry_run is DryRun.NONE:
        with ProgressLine("filler pods Running") as progress:
            wait_for_fillers(connection, names, timeout=timeout, progress=progress)
    click.echo(_summary(request, plan, dry_run), err=True)


def _check(
    context: click.Context,
    free: str | None,
    utilization: str | None,
    number: int | None,
    profiles: str | None,
    with_: str,
    priority: int | None,
) -> None:
    """Refuse flags that contradict each other or would do nothing."""
    given = [
        flag
        for flag, value in (("--free", free), ("--utilization", utilization), ("--random", number))
        if value is not None
    ]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other", context)
    if profiles is not None and given and given != ["--random"]:
        raise click.UsageError(f"--profiles and {given[0]} exclude each other", context)
    if profiles is not None and with_ == "pods":
        raise click.UsageError("--profiles and --with pods exclude each other", context)
    if profiles is not None and not profiles.strip():
        raise click.UsageError("--profiles names no profile", context)
    if priority is not None and with_ != "pods":
        raise click.UsageError("--priority goes with --with pods", context)
    seeded = context.get_parameter_source("seed") is ParameterSource.COMMANDLINE
    if seeded and utilization is None and number is None:
        raise click.UsageError("--seed goes with --random or --utilization", context)


def _numbers(context: click.Context, text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(re.fullmatch(r"\d{1,3}", word, re.ASCII) for word in words):
        raise click.UsageError(f'invalid --free "{text}": give a number for each node, as 2,2,2,1', context)
    return tuple(map(int, words))


def _percent(context: click.Context, text: str) -> int:
    match = re.fullmatch(r"(\d{1,3})%?", text.strip(), re.ASCII)
    if match is None or int(match.group(1)) > 100:
        raise click.UsageError(f'invalid --utilization "{text}": it must be from 0% to 100%', context)
    return int(match.group(1))


def _summary(request: OccupyRequest, plan: OccupyPlan, dry_run: DryRun) -> str:
    """`9 GPUs on 4 nodes are busy now (7 free)`."""
    busy, nodes, free = plan.summary
    what = f"{counted(busy, 'GPU')} on {counted(nodes, 'node')}"
    verb = "is" if busy == 1 else "are"
    sentence = f"{what} {verb} busy now ({free} free)"
    if request.profiles:
        sentence = f"{what} {verb} busy now, {request.profiles} of each that was named ({free} free)"
    return sentence if dry_run is DryRun.NONE else sentence.replace(f" {verb} busy now", " would be busy")
