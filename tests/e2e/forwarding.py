"""`kubectl ghost metrics port-forward` as a test runs it: begun, scraped, interrupted."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.support import E2ECluster

_SERVED = re.compile(r"(?:Forwarding|Serving on) http://localhost:(\d+)/metrics")


def xids(text: str) -> dict[tuple[str, str], tuple[int, dict[str, str]]]:
    """(node, gpu) -> XID and labels, of every GPU that has had one."""
    found = {}
    for labels, value in re.findall(r"^DCGM_FI_DEV_XID_ERRORS\{(.*)\} (\d+)$", text, re.MULTILINE):
        pairs = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if value != "0":
            found[pairs["Hostname"], pairs["gpu"]] = (int(value), pairs)
    return found


def nodes_in(text: str) -> set[str]:
    """The nodes that there are series of."""
    return set(re.findall(r'Hostname="([^"]*)"', text))


class PortForward:
    """One run of the command."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said = ""

    def port(self) -> int:
        """The local port, once it is forwarded."""
        while not (match := _SERVED.search(self.said)):
            line = self.process.stderr.readline()
            assert line, f"it has ended: {self.said}{self.process.stdout.read()}"
            self.said += line
        return int(match[1])

    def scrape(self, path: str = "/metrics") -> str:
        """What the agent answers."""
        with urllib.request.urlopen(f"http://localhost:{self.port()}{path}", timeout=30) as answer:
            return answer.read().decode()

    def scrape_again(self) -> str:
        """As `scrape`, once it can be reached again."""
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                return self.scrape()
            assert time.monotonic() < end, "it is not forwarded again"
            time.sleep(0.2)

    def children(self) -> list[int]:
        """Processes that it has started."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def interrupt(self) -> tuple[int, str, str]:
        """Press Ctrl-C: exit code, what it printed, and what it said beside that."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> tuple[int, str, str]:
        """Its exit code, what it printed, and what it said beside that."""
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, self.said + err


@contextlib.contextmanager
def port_forward(cluster: E2ECluster, *flags: str) -> Iterator[PortForward]:
    """The command, ended at the latest when the context is."""
    path = os.pathsep.join((str(cluster.bin_dir), os.environ["PATH"]))
    # SIGINT is ignored where a shell has put the tests into the background, and so it would be by what they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = cluster.start("metrics", "port-forward", *flags, PATH=path)
    finally:
        signal.signal(signal.SIGINT, before)
    forward = PortForward(process)
    try:
        yield forward
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=120)
