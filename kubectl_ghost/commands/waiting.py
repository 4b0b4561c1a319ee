"""Waiting for what a command has written, with progress on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_ghost.conventions.progress import ProgressLine

if TYPE_CHECKING:
    from kubectl_ghost.cluster.reads import Reader
    from kubectl_ghost.operations.changes import Change


def wait_for_nodes(reader: Reader, pool: str, changes: list[Change], timeout: float) -> None:
    """Wait until the nodes that these changes made or left are Ready."""
    from kubectl_ghost.cluster.resources import NODES
    from kubectl_ghost.operations.changes import Verb
    from kubectl_ghost.operations.fleet import pool_selector
    from kubectl_ghost.operations.waiting import wait_ready

    names = [change.name for change in changes if change.resource is NODES and change.verb is not Verb.DELETED]
    with ProgressLine("nodes Ready") as progress:
        wait_ready(reader, pool_selector(pool), names, timeout=timeout, progress=progress)


def wait_for_deletion(reader: Reader, changes: list[Change], timeout: float) -> None:
    """Wait until the nodes that were deleted are gone: a finalizer can keep them."""
    from kubectl_ghost.cluster.resources import NODES
    from kubectl_ghost.operations.changes import Verb
    from kubectl_ghost.operations.fleet import OURS
    from kubectl_ghost.operations.waiting import wait_gone

    uids = {
        change.body["metadata"]["uid"] for change in changes if change.resource is NODES and change.verb is Verb.DELETED
    }
    if uids:
        wait_gone(reader, OURS, uids, timeout=timeout)
