"""`kubectl ghost fault explain`."""

from __future__ import annotations

import re

import click

from kubectl_ghost.conventions.command import GhostCommand

_CODE = re.compile(r"(?:xid[- ]?)?(\d+)", re.IGNORECASE)
_EPILOG = """\b
Examples:
  # What XID 79 means, who reacts to it and how, and what NVIDIA advises
  kubectl ghost fault explain 79

\b
  # Everything there is, a line each
  kubectl ghost fault explain
"""


@click.command(cls=GhostCommand, name="explain", epilog=_EPILOG)
@click.argument("what", required=False, metavar="[CODE|KIND]")
@click.option("-o", "--output", metavar="FORMAT", help="Output format. One of: (json, yaml, name, jsonpath)")
def command(what: str | None, output: str | None) -> None:
    """Say what an XID or a kind of fault means, who reacts to it and how; of all of them without an argument."""
    from kubectl_ghost.commands.output import check_change_output, write
    from kubectl_ghost.operations.fault import kinds_of
    from kubectl_ghost.operations.fault_views import explanation, explanations
    from kubectl_ghost.render.columns import table
    from kubectl_ghost.render.fault_columns import EXPLANATION_COLUMNS, explanation_lines
    from kubectl_ghost.render.printers import printer

    check_change_output(output)
    if what is None:
        views = explanations()
        write(printer(output)(views) if output else table(EXPLANATION_COLUMNS, views))
        return
    match = _CODE.fullmatch(what)
    views = [explanation(name) for name in ([int(match.group(1))] if match else kinds_of([what]))]
    if output:
        write(printer(output, single=len(views) == 1)(views))
    for position, view in enumerate(() if output else views):
        write(["\n"] if position else [])
        write(explanation_lines(view))
