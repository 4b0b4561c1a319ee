"""The tool and a cluster of its as end-to-end tests reach them."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from kubectl_ghost.engine.folders import Folders

_NOT_INHERITED = {"KUBECONFIG", "KUBECACHEDIR", "KWOK_WORKDIR"}


@dataclasses.dataclass(frozen=True, slots=True)
class Ghost:
    """The tool as a user runs it, with folders of its own: nothing of the user's is read or written but the cache."""

    root: Path

    @property
    def home(self) -> Path:
        """The home folder that the tool sees."""
        return self.root / "home"

    def environment(self) -> dict[str, str]:
        """What every command of this user runs in."""
        inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
        return {
            **inherited,
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(Folders.of_user().cache.parent),
            "XDG_STATE_HOME": str(self.root / "state"),
        }

    def __call__(self, *arguments: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run one command line."""
        done = subprocess.run(
            [sys.executable, "-m", "kubectl_ghost", *arguments],
            env={**self.environment(), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{arguments} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done


@dataclasses.dataclass(frozen=True, slots=True)
class E2ECluster:
    """One running cluster and the ways a test reaches it."""

    name: str
    user: Ghost
    kubeconfig: Path
    bin_dir: Path

    @property
    def logs_dir(self) -> Path:
        """Where the components' logs and audit.log lie."""
        return self.kubeconfig.parent / "kwok" / "clusters" / self.name / "logs"

    def pid_of(self, component: str) -> int:
        """Process id of a component of this cluster."""
        return int((self.logs_dir.parent / "pids" / f"{component}.pid").read_text())

    def environment(self) -> dict[str, str]:
        """What kubectl runs in; its cache is kept out of the user's home, where only the tool could write then."""
        cache = str(self.user.root / "kubectl-cache")
        return {**self.user.environment(), "KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": cache}

    def kubectl(self, *arguments: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the set's kubectl against this cluster."""
        done = subprocess.run(
            [str(self.bin_dir / "kubectl"), *arguments],
            env=self.environment(),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {arguments} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def ghost(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `kubectl ghost` against this cluster."""
        return self.user(*arguments, check=check, KUBECONFIG=str(self.kubeconfig))

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Begin `kubectl ghost` against this cluster and leave it running; what it prints comes line by line."""
        return subprocess.Popen(
            [sys.executable, "-u", "-m", "kubectl_ghost", *arguments],
            env={**self.environment(), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def exports(stdout: str) -> dict[str, str]:
    """The variables that `cluster up` printed for a shell."""
    return dict(re.findall(r"^export (\w+)=(\S+)$", stdout, re.MULTILINE))


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something holds; the limit is generous, since no test asserts how long things take."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("did not come true")
        time.sleep(0.1)


def end_tests_on_sigterm() -> None:
    """A runner that gives up sends SIGTERM, which would end Python without a word: what was started has to go then."""

    def interrupt(*_: object) -> None:
        # Not by way of SIGINT: that is ignored where a shell has put the tests into the background.
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def running_cluster(user: Ghost, *flags: str) -> Iterator[E2ECluster]:
    """Make a cluster of a name that no other run has, and delete it in the end."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    end_tests_on_sigterm()
    try:
        printed = exports(user("cluster", "up", "--name", name, *flags).stdout)
        yield E2ECluster(name, user, Path(printed["KUBECONFIG"]), Path(printed["PATH"].removesuffix(":$PATH")))
    finally:
        user("cluster", "down", "--name", name)
