"""`kubectl ghost cluster build`."""

from __future__ import annotations

import click

from kubectl_ghost.commands.cluster_options import VERSION, tell
from kubectl_ghost.conventions.command import GhostCommand


@click.command(cls=GhostCommand, name="build")
@VERSION
def command(version: str | None) -> None:
    """Build the control plane's binaries into the user's cache and print their folder.

    The sources are Go modules, pinned by checksum and fetched by the ordinary go command, so its settings (GOPROXY and
    the like) apply. Interrupted, it goes on where it was; done, it changes nothing.
    """
    from kubectl_ghost.engine.build import build
    from kubectl_ghost.engine.folders import Folders
    from kubectl_ghost.engine.versions import version_set

    click.echo(build(version_set(version), Folders.of_user(), tell))
