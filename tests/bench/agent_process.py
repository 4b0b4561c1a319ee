"""`metrics serve` as a process of its own, looked at from outside: what it answers, and what it costs."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

from tests.e2e.support import E2ECluster

_SERVING = re.compile(r"Serving on http://localhost:(\d+)/")
_SECONDS = 120.0
_TICK = os.sysconf("SC_CLK_TCK")


class AgentProcess:
    """A running agent. `warnings` are the lines that it has written since it began to serve."""

    def __init__(self, process: Popen[str], port: int) -> None:
        self.process, self.port = process, port
        self.warnings: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self.warnings += (line.rstrip() for line in self.process.stderr)

    def cpu(self) -> float:
        """CPU seconds of all its threads so far, in steps of the kernel's clock (10 ms)."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def memory(self) -> tuple[float, float]:
        """Resident memory now and at most so far, in MB (2^20 bytes)."""
        status = self._proc("status")
        now, peak = (re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE) for name in ("VmRSS", "VmHWM"))
        assert now is not None
        assert peak is not None
        return int(now.group(1)) / 1024, int(peak.group(1)) / 1024

    def _proc(self, name: str) -> str:
        return Path(f"/proc/{self.process.pid}/{name}").read_text(encoding="ascii")

    def get(self, path: str) -> bytes:
        """An answer's body, uncompressed.

        Raises:
            RuntimeError: the answer is not 200.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body.decode()}")
        return body


@contextlib.contextmanager
def serving(cluster: E2ECluster, *flags: str) -> Iterator[AgentProcess]:
    """An agent that has read the cluster and listens; it is ended with the block."""
    process = cluster.start("metrics", "serve", "--port", "0", *flags)
    assert process.stderr is not None
    try:
        said = ""
        while (match := _SERVING.search(said)) is None:
            line = process.stderr.readline()
            if not line:
                raise RuntimeError(f"the agent ended: {said}")
            said += line
        yield AgentProcess(process, int(match.group(1)))
    finally:
        process.terminate()
        process.wait()


def cpu_per_second(agent: AgentProcess, seconds: float) -> float:
    """CPU seconds a second over so long a time."""
    before, began = agent.cpu(), time.monotonic()
    time.sleep(seconds)
    return (agent.cpu() - before) / (time.monotonic() - began)
