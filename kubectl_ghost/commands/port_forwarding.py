"""Runs `kubectl port-forward`, again and again as long as there is something to forward to."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO

from kubectl_ghost.domain.errors import GhostError

_LISTENING = re.compile(r"Forwarding from \S*:(\d+) -> ")
_LOOK_SECONDS = 1.0
"""How often it is asked whether the other end still lives: kubectl notices when somebody connects, or never."""
_PATIENCE_SECONDS = 60.0
"""How long a forward that has worked may fail to come back, as while the API server starts anew."""
_PAUSE_SECONDS = 1.0


def forward(
    command: Callable[[int], list[str]],
    port: int,
    *,
    why_over: Callable[[], str],
    listening: Callable[[int], None],
    warn: Callable[[str], None],
) -> None:
    """Forward until there is nothing left to forward to, which is an error; Ctrl-C is the way to end it.

    Args:
        command: kubectl's command line for a local port.
        port: the local one; 0 for any, which is kept then.
        why_over: why the other end is gone; "" while it is not.
        listening: told the local port, once.

    Raises:
        GhostError: the other end is gone, kubectl cannot begin, or cannot go on for a while.
    """
    broken: float | None = None
    begun = False
    while True:
        with _running(command(port)) as run:
            if run.wait_until_listening():
                port, broken = run.port, None
                if not begun:
                    listening(port)
                    begun = True
            while not run.has_ended(_LOOK_SECONDS):
                _stop_if(why_over())
        _stop_if(why_over())
        now = time.monotonic()
        broken = broken or now
        if not begun or now > broken + _PATIENCE_SECONDS:
            raise GhostError(f"kubectl port-forward: {run.last_words}")
        warn(f"kubectl port-forward has ended ({run.last_words}), it is started again")
        time.sleep(_PAUSE_SECONDS)


def _stop_if(reason: str) -> None:
    if reason:
        raise GhostError(f"the agent's pod serves no longer: {reason}", "Run the same command again for a new one.")


@contextlib.contextmanager
def _running(command: list[str]) -> Iterator[_Run]:
    run = _Run(command)
    try:
        yield run
    finally:
        run.stop()


class _Run:
    """One run of kubectl, its output read by threads so that it never waits for us."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._listening = threading.Event()
        self._errors: deque[str] = deque(maxlen=5)
        self.port = 0
        self._readers = [
            threading.Thread(target=self._read, args=(stream, take), daemon=True)
            for stream, take in ((self._process.stdout, self._take_output), (self._process.stderr, self._take_error))
        ]
        for reader in self._readers:
            reader.start()

    def wait_until_listening(self) -> bool:
        """Whether it has come to listen, rather than to its end."""
        while not self._listening.wait(0.05):
            if self._process.poll() is not None:
                # What it has said may still be on its way.
                self._readers[0].join()
                return self._listening.is_set()
        return True

    def has_ended(self, seconds: float) -> bool:
        """Whether kubectl has ended, waiting that long for it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return True
        return False

    def stop(self) -> None:
        """End it, if it has not ended."""
        self._process.terminate()
        self._process.wait()
        for reader in self._readers:
            reader.join()

    @property
    def last_words(self) -> str:
        """What kubectl said last of what went wrong."""
        if not self._errors:
            return f"exit code {self._process.returncode}"
        return "; ".join(self._errors)

    @staticmethod
    def _read(stream: IO[str], take: Callable[[str], None]) -> None:
        with stream:
            for line in stream:
                take(line.strip())

    def _take_output(self, line: str) -> None:
        match = _LISTENING.match(line)
        if match and not self._listening.is_set():
            self.port = int(match.group(1))
            self._listening.set()

    def _take_error(self, line: str) -> None:
        if line:
            self._errors.append(line)
