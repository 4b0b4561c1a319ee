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
        import json

        from kubectl_ghost.commands.session import reader

        answer = json.loads(reader(context).transport.request("GET", "/version"))
        click.echo(f"Server Version: {answer['gitVersion']}")
