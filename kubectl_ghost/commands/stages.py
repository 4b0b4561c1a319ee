"""`kubectl ghost stages`."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import GhostCommand


@click.command(cls=GhostCommand, name="stages")
def command() -> None:
    """Print the kwok stages, for a cluster that runs kwok with the Stage CRD but was not made by this tool.

    \b
    Examples:
      kubectl ghost stages | kubectl apply -f -
    """
    from kubectl_ghost.engine.stages import stages_text

    click.echo(stages_text(), nl=False)
