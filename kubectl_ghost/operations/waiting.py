"""Waiting until nodes are Ready, by watching them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection

from kubectl_ghost.cluster.errors import Gone
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json

Progress = Callable[[int, int], None]
"""Called with the number of nodes that are Ready and the number awaited."""
_PATIENCE = 30.0
"""Seconds without any node becoming Ready after which kwok is taken to be absent: it needs milliseconds a node."""


def is_ready(node: Json) -> bool:
    """Whether a node's Ready condition is True."""
    conditions = node.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


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
        if name in self.pending and is_ready(node):
            self.pending.discard(name)
            self.last = time.monotonic()
        self._progress(self.total - len(self.pending), self.total)


def wait_ready(reader: Reader, selector: str, names: Collection[str], *, timeout: float, progress: Progress) -> None:
    """Return when all these nodes are Ready.

    Args:
        selector: label selector that matches them.
        timeout: seconds to wait at most.

    Raises:
        GhostError: if they are not Ready in time, or none makes progress; the nodes stay, and waiting can be resumed.
    """
    deadline = time.monotonic() + timeout
    countdown = _Countdown(names, progress)
    while countdown.pending:
        listing = reader.list(NODES, label_selector=selector)
        for node in listing.items:
            countdown.see(node)
        patience = min(deadline, countdown.last + _PATIENCE) - time.monotonic()
        if countdown.pending and patience <= 0:
            raise _not_ready(countdown.pending, countdown.total)
        if countdown.pending:
            _watch(reader, selector, listing.resource_version, countdown, patience)


def _watch(reader: Reader, selector: str, resource_version: str, countdown: _Countdown, seconds: float) -> None:
    """Follow the nodes until none is pending, the time is over, or the server has forgotten that version."""
    with contextlib.suppress(Gone):
        for kind, node in reader.watch(
            NODES, resource_version=resource_version, label_selector=selector, timeout=max(1, round(seconds))
        ):
            if kind != "DELETED":
                countdown.see(node)
            if not countdown.pending:
                return


def _not_ready(pending: set[str], total: int) -> GhostError:
    first = min(pending)
    if len(pending) == total:
        return GhostError(
            f'none of {total} nodes became Ready (node "{first}" is still Unknown): is kwok running in this cluster?',
            "kwok must manage nodes annotated kwok.x-k8s.io/node=fake and have stages: kubectl ghost stages | "
            "kubectl apply -f -\nThe nodes are there; run the same command again to go on waiting.",
        )
    return GhostError(
        f'{len(pending)} of {total} nodes are not Ready yet, node "{first}" among them',
        "The nodes are there; run the same command again to go on waiting, with a longer --timeout if need be.",
    )
