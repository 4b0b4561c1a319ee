"""Waiting until nodes are Ready, by watching them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection

from kubectl_ghost.cluster.errors import Gone
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import NODE_DOWN_ANNOTATION, NODE_UNREACHABLE_ANNOTATION, Json

Progress = Callable[[int, int], None]
"""Called with the number of nodes that are Ready and the number awaited."""
_DOWN = {NODE_DOWN_ANNOTATION, NODE_UNREACHABLE_ANNOTATION}
_PATIENCE = 30.0
"""Seconds without any node becoming Ready after which kwok is taken to be absent: it needs milliseconds a node."""
_POLL_SECONDS = 0.2
_KWOK_HINT = (
    "kwok must manage nodes annotated kwok.x-k8s.io/node=fake and have stages: "
    "kubectl ghost stages | kubectl apply -f -\nThe nodes are there. Run the same command again to go on waiting."
)


def is_ready(node: Json) -> bool:
    """Whether a node's Ready condition is True."""
    conditions = node.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def may_become_ready(node: Json) -> bool:
    """Whether waiting for a node makes sense: one that is declared down stays NotReady."""
    return _DOWN.isdisjoint(node["metadata"].get("annotations") or {})


class _Countdown:
    """The nodes that are still awaited, and when one last became Ready."""

    def __init__(self, names: Collection[str], progress: Progress) -> None:
        self.pending = set(names)
        self.total = len(self.pending)
        self.last = time.monotonic()
        self._progress = progress

    def see(self, node: Json) -> None:
        """Take a node off if it is Ready."""
        name = node["metadata"]["name"]
        if name in self.pending and (is_ready(node) or not may_become_ready(node)):
            self.pending.discard(name)
            self.last = time.monotonic()
        self._progress(self.total - len(self.pending), self.total)


def wait_ready(reader: Reader, selector: str, names: Collection[str], *, timeout: float, progress: Progress) -> None:
    """Return when all these nodes are Ready, but for those that are declared down.

    Args:
        selector: label selector that matches them.
        timeout: seconds to wait at most.

    Raises:
        GhostError: if one is gone, they are not Ready in time, or none makes progress; waiting can be resumed.
    """
    deadline = time.monotonic() + timeout
    countdown = _Countdown(names, progress)
    while countdown.pending:
        listing = reader.list(NODES, label_selector=selector)
        for node in listing.items:
            countdown.see(node)
        gone = countdown.pending - {node["metadata"]["name"] for node in listing.items}
        if gone:
            raise GhostError(f'node "{min(gone)}" was deleted while waiting for it to become Ready')
        now = time.monotonic()
        if countdown.pending and now >= deadline:
            raise _timed_out(countdown)
        if countdown.pending and now >= countdown.last + _PATIENCE:
            raise _no_progress(countdown)
        if countdown.pending:
            _watch(
                reader, selector, listing.resource_version, countdown, min(deadline, countdown.last + _PATIENCE) - now
            )


def _watch(reader: Reader, selector: str, resource_version: str, countdown: _Countdown, seconds: float) -> None:
    """Follow the nodes until none is pending, the time is over, or the server has forgotten that version."""
    with contextlib.suppress(Gone):
        for kind, node in reader.watch(
            NODES, resource_version=resource_version, label_selector=selector, timeout=max(1, round(seconds))
        ):
            if kind == "DELETED" and node["metadata"]["name"] in countdown.pending:
                return
            if kind != "DELETED":
                countdown.see(node)
            if not countdown.pending:
                return


def _no_progress(countdown: _Countdown) -> GhostError:
    return GhostError(
        f"{_count(countdown)} became Ready within {_PATIENCE:.0f} seconds "
        f'(node "{min(countdown.pending)}" is still Unknown): is kwok running in this cluster?',
        _KWOK_HINT,
    )


def _timed_out(countdown: _Countdown) -> GhostError:
    nobody = len(countdown.pending) == countdown.total
    return GhostError(
        f"timed out: {_count(countdown)} became Ready in time "
        f'(node "{min(countdown.pending)}" is still Unknown)'
        + (": is kwok running in this cluster?" if nobody else ""),
        _KWOK_HINT if nobody else "The nodes are there. Run the same command again to go on waiting, or see --timeout.",
    )


def _count(countdown: _Countdown) -> str:
    if len(countdown.pending) == countdown.total:
        return f"none of {countdown.total} nodes"
    return f"only {countdown.total - len(countdown.pending)} of {countdown.total} nodes"


def wait_gone(reader: Reader, selector: str, uids: Collection[str], *, timeout: float) -> None:
    """Return when no node with one of these uids is left.

    Raises:
        GhostError: naming a node that something keeps from going, and what does.
    """
    deadline = time.monotonic() + timeout
    while True:
        left = [
            node
            for node in reader.list(NODES, label_selector=selector, metadata_only=True).items
            if node["metadata"]["uid"] in uids
        ]
        if not left:
            return
        if time.monotonic() >= deadline:
            metadata = left[0]["metadata"]
            keepers = ", ".join(metadata.get("finalizers") or ()) or "nothing that is known"
            raise GhostError(
                f'timed out: node "{metadata["name"]}" is marked for deletion and still there; finalizers: {keepers}'
            )
        time.sleep(_POLL_SECONDS)
