"""`kubectl ghost cordon`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import changing_options
from kubectl_ghost.domain.dry_run import DryRun

_EPILOG = """\b
Examples:
  # Mark node-0 as unschedulable
  kubectl ghost cordon node-0
"""

F = TypeVar("F", bound=Callable[..., Any])


def node_options(function: F) -> F:
    """NODE... and -l of commands that take nodes as kubectl's do."""
    selector = click.option("-l", "--selector", help="Selector (label query) to filter on")
    return click.argument("names", nargs=-1, metavar="[NODE]...")(selector(function))


def check_nodes(context: click.Context, names: tuple[str, ...], selector: str | None) -> None:
    """Refuse a command line that names no node, or both names and a selector.

    Raises:
        UsageError: in kubectl's words.
    """
    if names and selector is not None:
        raise click.UsageError("cannot specify both a node name and a --selector option", context)
    if not names and not selector:
        raise click.UsageError("name the nodes, or select them with -l", context)


def change_schedulable(
    context: click.Context,
    *,
    schedulable: bool,
    names: tuple[str, ...],
    selector: str | None,
    dry_run: DryRun,
    output: str | None,
) -> None:
    """What `cordon` and `uncordon` do."""
    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import writer
    from kubectl_ghost.conventions.messages import no_resources
    from kubectl_ghost.operations.cordon import read_nodes, set_schedulable

    check_nodes(context, names, selector)
    check_change_output(output)
    connection = writer(context, dry_run, output)
    nodes = read_nodes(connection, names, selector, "uncordon" if schedulable else "cordon")
    if not nodes:
        click.echo(no_resources(), err=True)
    print_changes(set_schedulable(connection, nodes, schedulable=schedulable), output, dry_run)


@click.command(cls=GhostCommand, epilog=_EPILOG)
@node_options
@changing_options
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Mark simulated nodes as unschedulable: pods that are there stay, no further ones come."""
    change_schedulable(context, schedulable=False, **given)
