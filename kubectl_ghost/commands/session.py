"""From the global flags to a connection, and the two lines that commands say about it."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING

import click

from kubectl_ghost.conventions.global_flags import values
from kubectl_ghost.domain.dry_run import DryRun

if TYPE_CHECKING:
    from kubectl_ghost.cluster.kubeconfig import Target
    from kubectl_ghost.cluster.reads import Reader
    from kubectl_ghost.cluster.transport import Transport
    from kubectl_ghost.cluster.writes import Writer


def target(context: click.Context) -> Target:
    """The cluster that the global flags and the kubeconfig point at."""
    from kubectl_ghost.cluster.kubeconfig import Overrides, load

    given = values(context)
    known = {field.name for field in fields(Overrides)}
    return load(Overrides(**{name: value for name, value in given.items() if name in known}), os.environ)


def reader(context: click.Context) -> Reader:
    """A connection that cannot write."""
    from kubectl_ghost.cluster.reads import Reader

    return Reader(_transport(context))


def writer(context: click.Context, dry_run: DryRun = DryRun.NONE, output: str | None = None) -> Writer:
    """A connection whose every write passes the guard.

    Args:
        output: the format in which what is written is printed: names need no more than its metadata.
    """
    from kubectl_ghost.cluster.writes import Writer
    from kubectl_ghost.operations.permission import permit

    return Writer(_transport(context), guard=permit, dry_run=dry_run, echo=output not in (None, "name"))


def announce(context: click.Context) -> None:
    """Name context and server, before the first write to a cluster."""
    found = target(context)
    where = f'context "{found.context}" at ' if found.context else ""
    click.echo(f"Writing to {where}{found.server}", err=True)


def warn(lines: list[str]) -> None:
    """Print warnings as kubectl does, and forget them."""
    for line in lines:
        click.echo(f"Warning: {line}", err=True)
    lines.clear()


def _transport(context: click.Context) -> Transport:
    from kubectl_ghost.cluster.transport import Transport

    verbosity = values(context).get("verbosity", 0)

    def log(level: int, line: str) -> None:
        if level <= verbosity:
            click.echo(line, err=True)

    return Transport(target(context), log=log if verbosity else None)
