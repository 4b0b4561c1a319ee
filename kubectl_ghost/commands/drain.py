"""`kubectl ghost drain`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from kubectl_ghost.commands.cordon import check_nodes, node_options
from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.durations import DURATION
from kubectl_ghost.conventions.flags import changing_options
from kubectl_ghost.conventions.progress import ProgressLine
from kubectl_ghost.domain.dry_run import DryRun

if TYPE_CHECKING:
    from kubectl_ghost.cluster.writes import Writer
    from kubectl_ghost.domain.errors import GhostError
    from kubectl_ghost.operations.changes import Change
    from kubectl_ghost.operations.drain import DrainRequest

_EPILOG = """\b
Examples:
  # Move the pods of node-0 elsewhere, as far as their PodDisruptionBudgets allow
  kubectl ghost drain node-0 --ignore-daemonsets

\b
  # The same, then reboot the node: it is NotReady for a minute, and faults that a reboot cures are gone
  kubectl ghost drain node-0 --ignore-daemonsets --reboot --reboot-time 1m
  kubectl ghost uncordon node-0
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@node_options
@click.option(
    "--reboot", is_flag=True, help="Then reboot the nodes: each is NotReady for --reboot-time and stays cordoned"
)
@click.option("--reboot-time", type=DURATION, default="30s", show_default=True, help="How long a reboot takes")
@click.option(
    "--wait",
    type=bool,
    default=True,
    metavar="BOOLEAN",
    help="With --reboot: if false, return once the reboot has begun, and leave it to `sync` to finish (default true)",
)
@click.option("--force", is_flag=True, help="Continue even if there are pods that declare no controller")
@click.option("--ignore-daemonsets", is_flag=True, help="Ignore DaemonSet-managed pods")
@click.option(
    "--delete-emptydir-data",
    is_flag=True,
    help="Continue even if there are pods using emptyDir (local data that will be deleted when the node is drained)",
)
@click.option(
    "--grace-period",
    type=int,
    default=-1,
    show_default=True,
    help="Seconds given to each pod to terminate gracefully; if negative, as the pod itself says",
)
@click.option("--pod-selector", help="Label selector to filter pods on the node")
@click.option(
    "--disable-eviction",
    is_flag=True,
    help="Delete the pods instead of evicting them: this bypasses PodDisruptionBudgets",
)
@click.option(
    "--timeout",
    type=DURATION,
    default="0s",
    show_default=True,
    help="The length of time to wait for the pods of a node to go before giving up, zero means infinite",
)
@changing_options
@click.pass_context
def command(
    context: click.Context,
    /,
    names: tuple[str, ...],
    selector: str | None,
    reboot: bool,
    reboot_time: float,
    wait: bool,
    force: bool,
    ignore_daemonsets: bool,
    delete_emptydir_data: bool,
    grace_period: int,
    pod_selector: str | None,
    disable_eviction: bool,
    timeout: float,
    dry_run: DryRun,
    output: str | None,
) -> None:
    """Drain simulated nodes, and reboot them if asked to.

    A node is cordoned, then its pods are evicted through the Eviction API under the rules and flags of `kubectl drain`.
    It stays cordoned, also after a reboot, until `kubectl ghost uncordon`. Ended at any moment, the same command goes
    on; it does not begin a second reboot while one lasts.
    """
    from kubectl_ghost.commands.output import check_change_output
    from kubectl_ghost.commands.session import writer
    from kubectl_ghost.domain.draining import DrainRules
    from kubectl_ghost.operations.drain import DrainRequest

    check_nodes(context, names, selector)
    _check_reboot(context, reboot, reboot_time)
    check_change_output(output)
    request = DrainRequest(
        rules=DrainRules(force=force, ignore_daemonsets=ignore_daemonsets, delete_emptydir_data=delete_emptydir_data),
        pod_selector=pod_selector,
        grace_seconds=grace_period if grace_period >= 0 else None,
        disable_eviction=disable_eviction,
        timeout=timeout,
    )
    _run(
        writer(context, dry_run, output),
        names,
        selector,
        request,
        reboot_time if reboot else None,
        wait=wait,
        output=output,
    )


def _check_reboot(context: click.Context, reboot: bool, seconds: float) -> None:
    for name in ("reboot_time", "wait"):
        if not reboot and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} goes with --reboot", context)
    if seconds < 1:
        raise click.UsageError(f"invalid --reboot-time {seconds:g}s: a reboot takes at least a second", context)


def _run(
    connection: Writer,
    names: tuple[str, ...],
    selector: str | None,
    request: DrainRequest,
    reboot_seconds: float | None,
    *,
    wait: bool,
    output: str | None,
) -> None:
    from kubectl_ghost.commands.output import print_changes
    from kubectl_ghost.conventions.messages import no_resources
    from kubectl_ghost.operations.cordon import read_nodes
    from kubectl_ghost.operations.drain import combined, drain_nodes
    from kubectl_ghost.operations.reboot import start_reboot

    nodes = read_nodes(connection, names, selector, "drain")
    if not nodes:
        click.echo(no_resources(), err=True)
    failures: dict[str, GhostError] = {}

    def tell(line: str) -> None:
        click.echo(line, err=True)

    def work() -> Iterator[Change]:
        then = None if reboot_seconds is None else partial(start_reboot, connection, seconds=reboot_seconds)
        yield from drain_nodes(connection, nodes, request, tell, failures, then)
        if then is not None and wait and connection.dry_run is DryRun.NONE:
            rebooting = [node["metadata"]["name"] for node in nodes if node["metadata"]["name"] not in failures]
            yield from _see_through(connection, rebooting)

    print_changes(work() if output is None else _outcomes(work()), output, connection.dry_run)
    if failures:
        raise combined(list(failures.values()))


def _see_through(connection: Writer, names: list[str]) -> Iterator[Change]:
    """Wait for reboots to be over and for the nodes to be Ready again."""
    from kubectl_ghost.operations.fleet import OURS
    from kubectl_ghost.operations.reboot import finish_reboots
    from kubectl_ghost.operations.waiting import wait_ready

    with ProgressLine("seconds of the reboot") as progress:
        done = list(finish_reboots(connection, names, progress))
    # Not sooner: the line of progress would stand in front of it.
    yield from done
    with ProgressLine("nodes Ready") as progress:
        wait_ready(connection, OURS, names, timeout=math.inf, progress=progress)
    if names:
        click.echo(f"Still cordoned; to let pods in again: kubectl ghost uncordon {' '.join(names)}", err=True)


def _outcomes(changes: Iterable[Change]) -> Iterator[Change]:
    """What programs want to know: every pod and every node once, in the end."""
    from kubectl_ghost.operations.changes import Verb

    return (change for change in changes if change.verb in (Verb.EVICTED, Verb.DELETED, Verb.DRAINED))
