"""Pods that come and go as fast as the real scheduler binds them."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque

from kubectl_ghost.cluster.errors import NotFound
from kubectl_ghost.cluster.resources import PODS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json
from tests.bench.agent_load import reader_of
from tests.e2e.fleet import apply, claim_template, pod
from tests.e2e.support import E2ECluster
from tests.soak.ledger import Ledger

APP = "churn"
_PATH = "/api/v1/namespaces/default/pods"
_AHEAD = 60
"""Pods that wait for the scheduler: enough that it never has nothing to do."""
_HANDS = 16
_PAUSE = 0.02


class Churn:
    """Keeps a number of pods running, each for as long as it takes all the others to be replaced."""

    def __init__(self, cluster: E2ECluster, *, standing: int, most: int, claims_percent: int) -> None:
        """Be ready to begin.

        Args:
            standing: how many pods are to run at a time.
            most: how many there may be at a time, those that do not run yet included.
            claims_percent: how many of a hundred get their GPU through a ResourceClaim.
        """
        self._reader = reader_of(cluster)
        self._standing, self._most, self._claims_percent = standing, most, claims_percent
        self._numbers, self._made, self._lock = itertools.count(), deque[str](), threading.Lock()
        self._on, self._ended = threading.Event(), threading.Event()
        self.ledger = Ledger()
        self.errors: list[str] = []
        apply(cluster, claim_template(APP, {}))

    def start(self) -> None:
        """Begin, in threads that end with the process."""
        version = self._reader.list(PODS).resource_version
        threading.Thread(target=self._watch, args=(version,), daemon=True).start()
        self._on.set()
        for _ in range(_HANDS):
            threading.Thread(target=self._work, daemon=True).start()

    def fill(self, seconds: float) -> bool:
        """Wait until as many run as are to, for so long; False if they do not by then."""
        end = time.monotonic() + seconds
        while self.ledger.running < self._standing and time.monotonic() < end:
            time.sleep(0.1)
        return self.ledger.running >= self._standing

    def pause(self) -> None:
        """Begin nothing more until `go_on`; what is under way ends by itself."""
        self._on.clear()

    def go_on(self) -> None:
        """After a pause."""
        self._on.set()

    def stop(self) -> None:
        """For good."""
        self._ended.set()
        self._on.set()

    def _watch(self, version: str) -> None:
        try:
            for kind, item in self._reader.watch(PODS, resource_version=version, label_selector=f"app={APP}"):
                self.ledger.see(kind, item, time.monotonic())
        except GhostError as error:
            # In the end the cluster goes before this process.
            if not self._ended.is_set():
                self.errors.append(f"the pods' watch ended: {error.message}")

    def _work(self) -> None:
        while self._on.wait() and not self._ended.is_set():
            try:
                if self.ledger.running > self._standing:
                    self._delete()
                elif self.ledger.waiting < _AHEAD and len(self._made) < self._most:
                    self._create()
                else:
                    time.sleep(_PAUSE)
            except GhostError as error:
                self.errors.append(error.message)
                time.sleep(1)

    def _create(self) -> None:
        number = next(self._numbers)
        name = f"{APP}-{number}"
        claimed = number * self._claims_percent % 100 < self._claims_percent
        # Without a grace period: a second and third request for each pod would be at the cost of new ones.
        wanted: Json = {"template": APP} if claimed else {"gpus": 1}
        body: Json = pod(name, terminationGracePeriodSeconds=0, **wanted)
        body["metadata"]["labels"] = {"app": APP}
        self._reader.transport.request("POST", _PATH, body=body)
        self._made.append(name)

    def _delete(self) -> None:
        with self._lock:
            # Several threads see that there is one too many: only those that are still right delete.
            if len(self._made) <= self._standing:
                return
            name = self._made.popleft()
        try:
            self._reader.transport.request("DELETE", f"{_PATH}/{name}")
        except NotFound:
            return
