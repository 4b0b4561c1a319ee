"""The soak's own account of its pods, from a watch of its own: what a scrape may and must show at a moment."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from kubectl_ghost.domain.keys import Json
from tests.soak.exposition import Holding

GPUS_ANNOTATION = "kubectl-ghost.dev/gpus"
_REMEMBERED_SECONDS = 120.0


@dataclass(slots=True)
class _Known:
    """A pod that exists; `since` is when it was first seen to run with its GPU known."""

    node: str = ""
    since: float | None = None
    doomed: bool = False

    @property
    def running(self) -> bool:
        """Whether it runs, its GPU is known, and nobody is deleting it."""
        return self.since is not None and not self.doomed


class Ledger:
    """Safe to use from several threads. Times are those of one monotonic clock.

    Attributes:
        bound: how many pods have got a node so far, `deleted` how many are gone.
        waiting: how many have none yet; `running` how many run with their GPU known.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[str, _Known] = {}
        self._on_node: dict[str, set[str]] = {}
        self._gone: dict[str, float] = {}
        self._order: deque[str] = deque()
        self.bound = self.deleted = self.waiting = self.running = 0

    def see(self, kind: str, pod: Json, now: float) -> None:
        """Take in an event of the watch."""
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        with self._lock:
            known = self._pods.get(name)
            if known is not None:
                self._count(known, -1)
            if kind == "DELETED":
                self._remove(name, now)
                return
            known = self._pods.setdefault(name, _Known())
            node = pod["spec"].get("nodeName", "")
            if node and not known.node:
                known.node = node
                self._on_node.setdefault(node, set()).add(name)
                self.bound += 1
            known.doomed = known.doomed or "deletionTimestamp" in pod["metadata"]
            if known.since is None and settled(pod):
                known.since = now
            self._count(known, 1)

    def _count(self, known: _Known, number: int) -> None:
        self.waiting += number * (not known.node)
        self.running += number * known.running

    def _remove(self, name: str, now: float) -> None:
        known = self._pods.pop(name, None)
        if known is not None and known.node:
            self._on_node[known.node].discard(name)
        self._gone[name] = now
        self._order.append(name)
        self.deleted += 1
        while self._order and self._gone[self._order[0]] < now - _REMEMBERED_SECONDS:
            del self._gone[self._order.popleft()]

    def restless(self) -> int:
        """How many pods something is still to happen to: to be bound, to run, to be recorded, to go."""
        with self._lock:
            return len(self._pods) - self.running

    def lag(self, node: str, shown: set[Holding], asked: float) -> float:
        """By how many seconds a scrape of a node that was asked for at a moment is behind this account.

        A pod that is gone must not be shown, one that runs and whose GPU is known must be.
        """
        names = {pod for _, _, pod in shown if pod}
        with self._lock:
            late = [asked - self._gone[name] for name in names if name in self._gone]
            for name in self._on_node.get(node, set()) - names:
                known = self._pods[name]
                if known.since is not None and known.running:
                    late.append(asked - known.since)
        return max(0.0, *late) if late else 0.0


def settled(pod: Json) -> bool:
    """Whether a pod runs and it is known which GPU it has."""
    if pod["status"].get("phase") != "Running":
        return False
    return bool(pod["spec"].get("resourceClaims")) or GPUS_ANNOTATION in (pod["metadata"].get("annotations") or {})
