"""`kubectl ghost uncordon`."""

from __future__ import annotations

from typing import Any

import click

from kubectl_ghost.commands.cordon import change_schedulable, node_options
from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import changing_options

_EPILOG = """\b
Examples:
  # Let pods onto node-0 again, after a drain
  kubectl ghost uncordon node-0
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@node_options
@changing_options
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Mark simulated nodes as schedulable again."""
    change_schedulable(context, schedulable=True, **given)
