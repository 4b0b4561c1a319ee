"""containerd and kubelet: their start and their end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine import kwokctl
from kubectl_ghost.engine.kwokctl import Cluster
from tests.realnode.harness import inside, packages
from tests.realnode.harness.places import LOGS, NODE_NAME

_SECONDS_UNTIL_READY = 90.0
_REPOSITORY = Path(__file__).parents[3]
_CGROUPS = Path("/sys/fs/cgroup")


def start(kubelet: Path, images: list[Path]) -> subprocess.Popen[bytes]:
    """Start the node in mount and pid namespaces of its own: ending one process ends every pod and drops every mount.

    It ends with the process that calls this, also by kill -9.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private", "--pid", "--fork"]
    command += ["--mount-proc", "--kill-child=KILL", sys.executable, "-m", inside.__name__]
    command += [str(kubelet), *map(str, images)]
    with (LOGS / "node.log").open("wb") as log:
        return subprocess.Popen(
            command,
            cwd=_REPOSITORY,
            env={**os.environ, "PATH": packages.search_path()},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C in a terminal is for the tests, which still have to clean up on the node.
            start_new_session=True,
        )


def wait_until_ready(cluster: Cluster, process: subprocess.Popen[bytes]) -> None:
    """Wait until the API server calls the node Ready.

    Raises:
        GhostError: the node has ended or takes too long, with the last that its log says.
    """
    end = time.monotonic() + _SECONDS_UNTIL_READY
    path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
    while kwokctl.kubectl(cluster, "get", "node", NODE_NAME, "-o", path).stdout != "True":
        if process.poll() is not None or time.monotonic() > end:
            logs = [path for path in sorted(LOGS.glob("*.log")) if path.is_file()]
            tails = "\n".join(f"{path}:\n{path.read_text(errors='replace')[-2000:]}" for path in logs)
            raise GhostError(f"the real node did not become Ready\n{tails}")
        time.sleep(0.2)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the node and every pod on it."""
    process.kill()
    process.wait()


def remove_cgroups() -> None:
    """Remove the cgroups of pods that are gone, in every hierarchy of version 1 or the one of version 2."""
    end = time.monotonic() + 10
    while remaining := [*_CGROUPS.glob("kubepods"), *_CGROUPS.glob("*/kubepods")]:
        for top in remaining:
            for folder, _, _ in os.walk(top, topdown=False):
                # Processes that were just killed may still be in it; whoever removed it already did it for us.
                subprocess.run(["rmdir", folder], capture_output=True, check=False)
        if time.monotonic() > end:
            raise GhostError(f"cgroups stay: {remaining}")
        time.sleep(0.05)
