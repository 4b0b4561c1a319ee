"""The first process of the node: mounts the folders it sees, starts containerd and kubelet, reaps orphans."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.realnode.harness.places import (
    CONTAINERD_CONFIG,
    CONTAINERD_SOCKET,
    KUBELET_CONFIG,
    KUBELET_KUBECONFIG,
    LOGS,
    NODE_ADDRESS,
    NODE_NAME,
    ROOT,
)

_FIXED = ("/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/run/containerd", "/run/netns")
"""Folders that kubelet, CNI and containerd's shims use whatever they are told."""
_SECONDS_FOR_CONTAINERD = 30.0


def main(kubelet: str, *images: str) -> int:
    """Be the node until containerd or kubelet ends."""
    for path in _FIXED:
        own = ROOT / "fixed" / path.lstrip("/")
        for folder in (Path(path), own):
            folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", str(own), path], check=True)
    containerd = _started("containerd", "--config", str(CONTAINERD_CONFIG))
    _import(images)
    arguments = ["--config", str(KUBELET_CONFIG), "--kubeconfig", str(KUBELET_KUBECONFIG)]
    arguments += ["--root-dir", str(ROOT / "kubelet" / "root"), "--cert-dir", str(ROOT / "kubelet" / "pki")]
    arguments += ["--hostname-override", NODE_NAME, "--node-ip", NODE_ADDRESS]
    ours = {containerd.pid, _started(kubelet, *arguments).pid}
    # As the first process of a pid namespace it inherits every shim and everything that a pod leaves behind.
    while os.wait()[0] not in ours:
        pass
    return 1


def _started(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (LOGS / f"{Path(program).name}.log").open("wb") as log:
        return subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _import(images: tuple[str, ...]) -> None:
    """Give containerd the images, before kubelet could want to pull them."""
    ctr = ["ctr", "--address", str(CONTAINERD_SOCKET), "--namespace", "k8s.io"]
    end = time.monotonic() + _SECONDS_FOR_CONTAINERD
    while subprocess.run([*ctr, "version"], capture_output=True, check=False).returncode != 0:
        if time.monotonic() > end:
            raise TimeoutError("containerd does not answer")
        time.sleep(0.1)
    for image in images:
        subprocess.run([*ctr, "images", "import", image], check=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
