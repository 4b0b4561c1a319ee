"""What the `cluster` subcommands have in common: their flags, and progress on stderr."""

from __future__ import annotations

import click

NAME = click.option("--name", metavar="NAME", default="kubectl-ghost", show_default=True, help="Name of the cluster")
VERSION = click.option("--version", metavar="VERSION", help="Kubernetes minor version, such as 1.36")
BIN_DIR = click.option(
    "--bin-dir",
    metavar="DIR",
    help="Use the binaries in this folder and no others (default $KUBECTL_GHOST_BIN_DIR)",
)


def tell(line: str) -> None:
    """Progress goes to stderr: stdout is for results, which a shell may evaluate."""
    click.echo(line, err=True)
