"""`kubectl ghost fault KIND`: one command for each kind of fault, all made alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.durations import DURATION
from kubectl_ghost.conventions.flags import changing_options, waiting_options
from kubectl_ghost.conventions.progress import ProgressLine
from kubectl_ghost.conventions.targets import random_options, target_options
from kubectl_ghost.domain.dry_run import DryRun

if TYPE_CHECKING:
    from kubectl_ghost.cluster.writes import Writer
    from kubectl_ghost.domain.selection import Selection
    from kubectl_ghost.operations.fault import FaultPlan, FaultRequest

F = TypeVar("F", bound=Callable[..., Any])
_NODE_KINDS = ("driver-crash", "node-down", "node-unreachable")
_REACTORS = ("device-plugin", "dra", "eks-node-monitoring", "node-problem-detector", "nvsentinel")
_TYPES = ("correctable", "uncorrectable", "row-remap-pending", "row-remap-failure")


def injection(kind: str, summary: str) -> click.Command:
    """The command that declares one kind of fault.

    Args:
        kind: the subcommand's name.
        summary: what breaks, one sentence without a full stop.
    """

    @click.command(
        cls=GhostCommand, name=kind, help=f"{summary}.\n\n{_HELP[kind in _NODE_KINDS]}", epilog=_epilog(kind)
    )
    @target_options
    @random_options
    @_own_option(kind)
    @click.option(
        "--as",
        "reactors",
        multiple=True,
        callback=_reactors,
        metavar="COMPONENT",
        help=f"Who reacts to it, as in the field (comma separated): {', '.join(_REACTORS)}",
    )
    @click.option(
        "--effect",
        type=click.Choice(("None", "NoSchedule", "NoExecute")),
        help="Effect of the device taint, in place of the catalogue's",
    )
    @click.option("--for", "seconds", type=DURATION, help="End by itself after this time: at the next command, or sync")
    @click.option("--force", is_flag=True, help="Allow a fault that does not occur on this GPU model")
    @waiting_options
    @changing_options
    @click.pass_context
    def command(context: click.Context, /, **given: Any) -> None:
        _run(context, kind, given)

    return command


_HELP = {
    False: "A TARGET is a GPU (node-3/gpu-2, or the two words node-3 gpu-2), or a node for all of its GPUs.",
    True: "A TARGET is a node.",
}


def _epilog(kind: str) -> str:
    target, random = ("node-3", "two nodes") if kind in _NODE_KINDS else ("node-3 gpu-2", "two GPUs of a pool")
    return f"""\b
Examples:
  kubectl ghost fault {kind} {target}

\b
  # On {random} at random, for ten minutes
  kubectl ghost fault {kind} --pool node --random 2 --seed 1 --for 10m

--as after the command names components. To impersonate a user, put kubectl's --as before it:
kubectl ghost --as=USER fault {kind} {target}
"""


def _own_option(kind: str) -> Callable[[F], F]:
    """The option that one kind alone has."""
    if kind == "xid":
        return click.option("--code", type=int, default=79, show_default=True, help="The XID; see `fault explain`")
    if kind == "ecc":
        return click.option(
            "--type", "subtype", type=click.Choice(_TYPES), default="uncorrectable", show_default=True, help="Which"
        )
    return lambda function: function


def _reactors(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    names = [name.strip() for text in given for name in text.split(",")]
    for name in names:
        if name not in _REACTORS:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(_REACTORS)}", context, parameter)
    return tuple(names)


def _run(context: click.Context, kind: str, given: dict[str, Any]) -> None:
    from kubectl_ghost.commands.output import check_change_output
    from kubectl_ghost.commands.session import writer
    from kubectl_ghost.domain.faults import Effect, Reactor
    from kubectl_ghost.operations.fault import ECC_KINDS, FaultRequest

    seconds = given["seconds"]
    if seconds is not None and seconds < 1:
        raise click.UsageError(f"invalid --for {seconds:g}s: a fault lasts at least a second", context)
    check_change_output(given["output"])
    request = FaultRequest(
        kind=ECC_KINDS[given["subtype"]] if kind == "ecc" else kind,
        code=given.get("code"),
        reactors=tuple(map(Reactor, given["reactors"])),
        effect=Effect(given["effect"]) if given["effect"] else None,
        seconds=seconds,
        force=given["force"],
    )
    selection = replace(given["selection"], number=given["number"], seed=given["seed"])
    _inject(writer(context, given["dry_run"], given["output"]), selection, request, given)


def _inject(connection: Writer, selection: Selection, request: FaultRequest, given: dict[str, Any]) -> None:
    from itertools import chain

    from kubectl_ghost.commands.output import print_changes
    from kubectl_ghost.operations.change_hardware import end_what_is_over
    from kubectl_ghost.operations.fault import inject, plan_fault
    from kubectl_ghost.operations.fault_effects import Leaving

    ended = list(end_what_is_over(connection))
    plan = plan_fault(connection, selection, request)
    click.echo(plan.summary, err=True)
    leaving: Leaving = {}
    print_changes(chain(ended, inject(connection, plan, leaving)), given["output"], connection.dry_run)
    if given["wait"] and connection.dry_run is DryRun.NONE:
        _wait(connection, plan, leaving, given["timeout"])


def _wait(connection: Writer, plan: FaultPlan, leaving: dict[str, tuple[str, str]], timeout: float) -> None:
    from kubectl_ghost.operations.fault_waiting import wait_down, wait_left

    if leaving:
        with ProgressLine("pods gone") as progress:
            wait_left(connection, plan.chosen, leaving, timeout=timeout, progress=progress)
    if plan.takes_down:
        with ProgressLine("nodes down") as progress:
            wait_down(connection, plan.takes_down, timeout=timeout, progress=progress)
