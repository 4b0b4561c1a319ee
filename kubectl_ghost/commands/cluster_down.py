"""`kubectl ghost cluster down`."""

from __future__ import annotations

import click

from kubectl_ghost.commands.cluster_options import NAME, tell
from kubectl_ghost.conventions.command import GhostCommand


@click.command(cls=GhostCommand, name="down")
@NAME
def command(name: str) -> None:
    """Delete a cluster with everything on it, its folder and its kubeconfig. Without one there is nothing to do."""
    from kubectl_ghost.engine.down import down
    from kubectl_ghost.engine.folders import Folders

    if down(name, Folders.of_user(), tell):
        click.echo(f'cluster "{name}" deleted')
    else:
        click.echo(f'cluster "{name}" unchanged: there is none')
