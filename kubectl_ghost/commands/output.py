"""Printing what commands found or did, in the format that -o asks for."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable

from kubectl_ghost.conventions.messages import deleted, evicting, verbed
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.operations.changes import Change, Verb


def write(chunks: Iterable[str]) -> None:
    """Write chunks of text that carry their own line ends."""
    for chunk in chunks:
        sys.stdout.write(chunk)


def check_change_output(output: str | None) -> None:
    """Refuse an unknown -o before anything is written to the cluster.

    Raises:
        InputError: naming the formats.
    """
    from kubectl_ghost.render.printers import printer

    if output is None or output in ("name", "json", "yaml"):
        return
    if output.partition("=")[0] in ("jsonpath", "jsonpath-as-json", "jsonpath-file"):
        printer(output)
        return
    raise InputError(
        f'unable to match a printer suitable for the output format "{output}", '
        "allowed formats are: json,jsonpath,jsonpath-as-json,jsonpath-file,name,yaml"
    )


def print_changes(changes: Iterable[Change], output: str | None, dry_run: DryRun) -> list[Change]:
    """Print changes as they happen, or the objects together at the end.

    Returns:
        What happened, in order; with no more than each object's metadata, unless all of it is printed at the end.
    """
    from kubectl_ghost.render.printers import printer

    whole = output not in (None, "name")
    done = []
    for change in changes:
        done.append(change if whole else change.brief())
        # Not click.echo, which flushes each line: there are thousands.
        if output is None:
            _say(_sentence(change, dry_run))
        elif output == "name":
            _say(f"{change.resource.title}/{change.name}")
    if whole:
        bodies = [change.body for change in done]
        write(printer(str(output), single=len(bodies) == 1)(bodies))
    return done


def _say(line: str) -> None:
    """Print a line; when its reader (head, less) has gone, what was begun goes on without one."""
    try:
        sys.stdout.write(line + "\n")
    except BrokenPipeError:
        sys.stdout = io.StringIO()


def _sentence(change: Change, dry_run: DryRun) -> str:
    if change.verb is Verb.DELETED:
        return deleted(change.resource.title, change.name, change.namespace, dry_run)
    if change.verb is Verb.EVICTING:
        return evicting(change.name, change.namespace, dry_run)
    return verbed(change.resource.title, change.name, change.verb.value, dry_run)
