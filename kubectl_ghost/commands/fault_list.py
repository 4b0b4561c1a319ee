"""`kubectl ghost fault list`."""

from __future__ import annotations

from typing import Any

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import listing_options

_EPILOG = """\b
Examples:
  # Every fault of the fleet
  kubectl ghost fault list

\b
  # What is wrong with one GPU, and who holds it
  kubectl ghost fault list node-3/gpu-2 -o wide
"""


@click.command(cls=GhostCommand, name="list", epilog=_EPILOG)
@click.argument("names", nargs=-1, metavar="[TARGET]...")
@click.option("--pool", help="All nodes of this pool")
@listing_options
@click.pass_context
def command(
    context: click.Context, /, names: tuple[str, ...], pool: str | None, output: str | None, **flags: Any
) -> int:
    """List the faults that are declared, as `get faults` does.

    A TARGET is a GPU (node-3/gpu-2, or the two words node-3 gpu-2), or a node for all of its faults. What is over is
    marked so, and goes with the next command that changes hardware.
    """
    from kubectl_ghost.commands.get import show

    if pool is not None and names:
        raise click.UsageError("name nodes, or use --pool: not both", context)
    # No selector: nodes that were adopted with the pool's settings carry another label.
    flags["pool"] = pool
    return show(context, "faults", names, output or "", flags)
