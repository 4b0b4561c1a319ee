"""Flags that several commands share, spelled and explained as kubectl does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from kubectl_ghost.conventions.durations import DURATION
from kubectl_ghost.domain.dry_run import DryRun

F = TypeVar("F", bound=Callable[..., Any])


class DryRunType(click.ParamType[DryRun]):
    """none, client or server; kubectl's older booleans and the bare flag still work."""

    name = "none|client|server"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> DryRun:
        """The mode meant; the old spellings warn as kubectl's do."""
        if isinstance(value, DryRun):
            return value
        if value == "unspecified":
            click.echo("W: --dry-run is deprecated and can be replaced with --dry-run=client.", err=True)
            return DryRun.CLIENT
        old = {"true": DryRun.CLIENT, "false": DryRun.NONE}
        if str(value).lower() in old:
            return old[str(value).lower()]
        try:
            return DryRun(value)
        except ValueError:
            self.fail(f'Invalid dry-run value ({value}). Must be "none", "server", or "client".', param, ctx)


_CHANGING = (
    click.option(
        "--dry-run",
        type=DryRunType(),
        default="none",
        help="If client, only print what would be sent; if server, submit it without persisting it",
    ),
    click.option("-o", "--output", metavar="FORMAT", help="Output format. One of: (json, yaml, name, jsonpath)"),
)
_WAITING = (
    click.option(
        "--wait",
        type=bool,
        default=True,
        metavar="BOOLEAN",
        help="If true, wait until the change has happened before returning (default true)",
    ),
    click.option(
        "--timeout",
        type=DURATION,
        default="5m",
        show_default=True,
        help="The length of time to wait before giving up; at once after 30s in which nothing happens",
    ),
)


def changing_options(function: F) -> F:
    """--dry-run and -o of commands that write."""
    return _all_of(_CHANGING, function)


def waiting_options(function: F) -> F:
    """--wait and --timeout."""
    return _all_of(_WAITING, function)


def allow_mixed_option(function: F) -> F:
    """--allow-mixed of commands that put nodes on a cluster."""
    return click.option(
        "--allow-mixed", is_flag=True, help="Go on in a cluster with real GPU nodes or many real nodes"
    )(function)


def _all_of(options: Sequence[Callable[[F], F]], function: F) -> F:
    for option in reversed(options):
        function = option(function)
    return function


_LISTING = (
    click.option(
        "-o",
        "--output",
        metavar="FORMAT",
        help="Output format. One of: (json, yaml, name, wide, custom-columns, custom-columns-file, jsonpath, "
        "jsonpath-as-json, jsonpath-file)",
    ),
    click.option("-l", "--selector", help="Selector (label query) to filter on, supports '=', '==', '!=', 'in'"),
    click.option("--field-selector", help="Selector (field query) to filter on, evaluated by the server"),
    click.option("-L", "--label-columns", multiple=True, help="Labels to be presented as columns (comma separated)"),
    click.option("--show-labels", is_flag=True, help="When printing, show all labels as the last column"),
    click.option(
        "--no-headers", is_flag=True, help="When using the default or custom-column output, don't print headers"
    ),
    click.option("--sort-by", metavar="JSONPATH", help="Sort by this field, a JSONPath expression"),
    click.option("-w", "--watch", is_flag=True, help="After listing, watch for changes"),
    click.option("-A", "--all-namespaces", is_flag=True, help="Accepted as kubectl does for cluster-wide objects"),
    click.option(
        "--chunk-size",
        type=click.IntRange(min=0),
        default=500,
        show_default=True,
        help="Return large lists in chunks rather than all at once; 0 to disable",
    ),
    click.option("--ignore-not-found", is_flag=True, help="If set, exit with 0 when a named object does not exist"),
    click.option("--show-managed-fields", is_flag=True, help="If true, keep the managedFields when printing objects"),
)


def listing_options(function: F) -> F:
    """kubectl get's flags."""
    return _all_of(_LISTING, function)
