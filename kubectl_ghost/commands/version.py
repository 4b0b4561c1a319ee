"""`kubectl ghost version`."""

from __future__ import annotations

import click

from kubectl_ghost import __version__
from kubectl_ghost.conventions.command import GhostCommand


@click.command(cls=GhostCommand)
@click.option("--client", is_flag=True, help="If true, shows client version only (no server required)")
@click.pass_context
def command(context: click.Context, client: bool) -> None:
    """Print the version of this tool and of the server."""
    click.echo(f"Client Version: v{__version__}")
    if not client:
        from kubectl_ghost.commands.session import reader

        click.echo(f"Server Version: {reader(context).git_version()}")
