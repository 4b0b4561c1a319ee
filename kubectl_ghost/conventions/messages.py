"""kubectl's sentences, so that scripts written for kubectl read ours."""

from __future__ import annotations

from kubectl_ghost.domain.dry_run import DryRun

_SUFFIXES = {DryRun.NONE: "", DryRun.CLIENT: " (dry run)", DryRun.SERVER: " (server dry run)"}


def verbed(title: str, name: str, verb: str, dry_run: DryRun = DryRun.NONE) -> str:
    """`node/node-0 created`: what happened to one object.

    Args:
        title: the object's type as kubectl prints it, `resourceslice.resource.k8s.io` say.
    """
    return f"{title}/{name} {verb}{_SUFFIXES[dry_run]}"


def deleted(title: str, name: str, namespace: str | None, dry_run: DryRun = DryRun.NONE) -> str:
    """`node "node-0" deleted`, with the namespace where there is one."""
    place = f" from {namespace} namespace" if namespace else ""
    return f'{title} "{name}" deleted{place}{_SUFFIXES[dry_run]}'


def evicting(name: str, namespace: str | None, dry_run: DryRun = DryRun.NONE) -> str:
    """`evicting pod default/web-0`: what `kubectl drain` says before it has happened."""
    return f"evicting pod {namespace}/{name}{_SUFFIXES[dry_run]}"


def no_resources() -> str:
    """What a listing says on stderr when there is nothing to list."""
    return "No resources found"


def not_found(title: str, name: str) -> str:
    """kubectl's words for a named object that is not there."""
    return f'Error from server (NotFound): {title} "{name}" not found'
