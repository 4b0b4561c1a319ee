"""`kubectl ghost options`: the flags that every command takes."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.global_flags import global_options


@click.command(cls=GhostCommand)
@click.pass_context
def command(context: click.Context) -> None:
    """List the flags that can be passed to any command."""
    formatter = context.make_formatter()
    formatter.write("The following options can be passed to any command:\n\n")
    rows = []
    for option in global_options():
        option.hidden = False
        record = option.get_help_record(context)
        if record:
            rows.append(record)
    formatter.write_dl(sorted(rows, key=lambda row: row[0].lstrip("-")))
    click.echo(formatter.getvalue().rstrip("\n"))
