"""`kubectl ghost get pools|nodes|gpus|faults`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import listing_options

if TYPE_CHECKING:
    from kubectl_ghost.domain.keys import Json
    from kubectl_ghost.operations.inventory import Inventory
    from kubectl_ghost.render.columns import Column

_TYPES = {
    **dict.fromkeys(("pools", "pool"), "pools"),
    **dict.fromkeys(("nodes", "node", "no"), "nodes"),
    **dict.fromkeys(("gpus", "gpu"), "gpus"),
    **dict.fromkeys(("faults", "fault"), "faults"),
}
_TITLES = {
    "pools": "pools.kubectl-ghost.dev",
    "nodes": "nodes",
    "gpus": "gpus.kubectl-ghost.dev",
    "faults": "nodes",
}
_WATCH_SECONDS = 1.0

_EPILOG = """\b
Examples:
  # Who holds which GPU
  kubectl ghost get gpus

\b
  # One GPU, with its UUID and PCI address
  kubectl ghost get gpus node-0/gpu-2 -o wide

\b
  # Names of the nodes of one pool
  kubectl ghost get nodes -l kubectl-ghost.dev/pool=node -o name
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@click.argument("kind", metavar="pools|nodes|gpus|faults")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@listing_options
@click.pass_context
def command(context: click.Context, /, kind: str, names: tuple[str, ...], output: str | None, **flags: Any) -> int:
    """Display pools, nodes, GPUs or faults of the simulated fleet.

    A GPU is named NODE/GPU, as in node-3/gpu-2. Faults are asked for by their node or GPU.
    """
    if kind not in _TYPES:
        raise click.UsageError(
            f'the server doesn\'t have a resource type "{kind}": use pools, nodes, gpus or faults', context
        )
    return show(context, _TYPES[kind], names, output or "", flags)


def show(context: click.Context, kind: str, names: tuple[str, ...], output: str, flags: dict[str, Any]) -> int:
    """Print objects of one kind, and with --watch what changes of them; returns the exit code."""
    from kubectl_ghost.commands.output import write
    from kubectl_ghost.commands.session import reader, warn
    from kubectl_ghost.conventions.messages import no_resources, not_found

    if names and (flags["selector"] or flags["field_selector"]):
        raise click.UsageError("name cannot be provided when a selector is specified", context)
    listing = _Listing(kind, names, output, flags)
    listing.check()
    connection = reader(context)
    rows, missing = listing.rows(connection)
    write(listing.lines(rows, headers=not flags["no_headers"]))
    warn(listing.problems)
    for name in missing:
        click.echo(not_found(_TITLES[listing.kind], name), err=True)
    if not rows and not missing and (not names or kind == "faults"):
        click.echo(no_resources(), err=True)
    if flags["watch"] and not missing:
        _watch(listing, connection, rows)
    return 1 if missing else 0


@dataclass
class _Listing:
    """What is asked for, and how it is printed."""

    kind: str
    names: tuple[str, ...]
    output: str
    flags: dict[str, Any]
    columns: Callable[[], list[Column]] = list
    problems: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Refuse an unknown format before the cluster is asked."""
        from kubectl_ghost.render.printers import printer

        printer(self.output)

    def rows(self, connection: Any) -> tuple[list[Json], list[str]]:
        """The objects to show, and the names that were asked for and are not there."""
        from kubectl_ghost.operations.inventory import read_inventory
        from kubectl_ghost.render.sorting import sort_by

        inventory = read_inventory(
            connection,
            selector=self.flags["selector"],
            field_selector=self.flags["field_selector"],
            chunk=self.flags["chunk_size"],
            whole=self.kind == "nodes",
            readiness=self.kind == "pools",
        )
        self.problems = inventory.problems
        found = self._views(inventory)
        if self.flags.get("pool"):
            from kubectl_ghost.operations.fleet import unknown_pool

            if self.flags["pool"] not in inventory.groups:
                raise unknown_pool(self.flags["pool"], inventory.groups)
            members = {node["metadata"]["name"] for node in inventory.groups[self.flags["pool"]]}
            found = [row for row in found if row["spec"]["node"] in members]
        missing: list[str] = []
        if self.names and self.kind in ("faults", "gpus"):
            found, missing = _at_targets(self.names, found, inventory)
        elif self.names:
            by_name = {row["metadata"]["name"]: row for row in found}
            missing = [name for name in self.names if name not in by_name]
            found = [by_name[name] for name in self.names if name in by_name]
        if self.flags["ignore_not_found"]:
            missing = []
        if self.flags["sort_by"]:
            found = sort_by(found, self.flags["sort_by"])
        return found, missing

    def _views(self, inventory: Inventory) -> list[Json]:
        from datetime import UTC, datetime

        from kubectl_ghost.operations.views import gpu_views, pool_views
        from kubectl_ghost.render.fleet_columns import gpu_columns, node_columns, pool_columns

        now = datetime.now(UTC)
        if self.kind == "pools":
            self.columns = lambda: pool_columns(now)
            return pool_views(inventory)
        if self.kind == "gpus":
            self.columns = lambda: gpu_columns(now)
            return gpu_views(inventory)
        if self.kind == "faults":
            from kubectl_ghost.operations.clock import stamp
            from kubectl_ghost.operations.fault_views import fault_views
            from kubectl_ghost.render.fault_columns import fault_columns

            self.columns = lambda: fault_columns(now)
            return fault_views(inventory, stamp(now))
        self.columns = lambda: node_columns(now, inventory.held_on, inventory.free_on)
        return inventory.in_order

    def lines(self, rows: list[Json], *, headers: bool) -> Any:
        """The text of these objects."""
        from kubectl_ghost.render.label_columns import label_columns
        from kubectl_ghost.render.printers import printer

        extra = label_columns(self.flags["label_columns"], show_labels=self.flags["show_labels"])
        show = printer(
            self.output,
            columns=[*self.columns(), *extra],
            headers=headers,
            single=len(self.names) == 1 and self.kind != "faults",
            show_managed_fields=self.flags["show_managed_fields"],
        )
        return show(rows)


def _at_targets(names: tuple[str, ...], rows: list[Json], inventory: Inventory) -> tuple[list[Json], list[str]]:
    """Of the GPUs or faults those that are named; a node alone means all of its GPUs, and its own faults."""
    from kubectl_ghost.domain.identity import gpu_name
    from kubectl_ghost.domain.targets import check_gpus, parse_targets

    found: list[Json] = []
    missing = []
    for target in parse_targets(names):
        declared = inventory.hardware.get(target.node)
        if declared is None:
            missing.append(target.node)
            continue
        on_gpus = {gpu_name(index) for index in check_gpus(target, declared.settings.gpus)}
        for row in rows:
            device = row["spec"].get("device")
            if row["spec"]["node"] == target.node and (device in on_gpus or (device is None and target.gpus is None)):
                found.append(row)
    return found, missing


def _identity(row: Json) -> tuple[str, ...]:
    """What tells rows apart: several faults of one GPU have one name."""
    spec = row.get("spec", {})
    return row["metadata"]["name"], str(spec.get("kind")), str(spec.get("code"))


def _watch(listing: _Listing, connection: Any, rows: list[Json]) -> None:
    """Print what changes, looking once a second, until Ctrl-C. As with kubectl, what goes is printed a last time."""
    import sys

    from kubectl_ghost.commands.output import write

    known = {_identity(row): row for row in rows}
    while True:
        sys.stdout.flush()
        time.sleep(_WATCH_SECONDS)
        rows, _ = listing.rows(connection)
        now = {_identity(row): row for row in rows}
        changed = [row for name, row in now.items() if known.get(name) != row]
        changed += [row for name, row in known.items() if name not in now]
        if changed:
            write(listing.lines(changed, headers=False))
        known = now
