"""kubelet, built once into the user's cache from the modules that the control plane was built from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.progress import Progress
from kubectl_ghost.engine.toolchain import find_go, go_environment, required_go
from kubectl_ghost.engine.versions import Binary, VersionSet, controlplane_data

_PACKAGE = "k8s.io/kubernetes/cmd/kubelet"


def require_kubelet(versions: VersionSet, folders: Folders, progress: Progress) -> Path:
    """The path of a kubelet of the control plane's version.

    Raises:
        GhostError: there is no usable go command, or the build fails.
    """
    kubelet = folders.cache / "realnode" / versions.key / "kubelet"
    if not kubelet.exists():
        progress(f"building kubelet {versions.kubernetes}: a minute once the control plane was built here, else more")
        _build(_like(versions), kubelet)
    return kubelet


def _like(versions: VersionSet) -> Binary:
    """Another program of kubelet's project: it says where the modules lie and what is stamped into a build."""
    return next(binary for binary in versions.binaries if binary.name == "kube-apiserver")


def _build(sibling: Binary, kubelet: Path) -> None:
    workshop = kubelet.parent / "build"
    shutil.rmtree(workshop, ignore_errors=True)
    workshop.mkdir(parents=True)
    module = controlplane_data() / sibling.folder
    for name in ("go.mod", "go.sum"):
        (workshop / name).write_bytes((module / name).read_bytes())
    go = find_go(required_go([module]), workshop)
    # kubelet imports a few modules more than the control plane. Which versions they are follows from kubelet's own.
    _run_go([go, "get", "-tool", f"{_PACKAGE}@v{sibling.version}"], workshop, GOFLAGS="-mod=mod")
    _run_go([go, "build", "-trimpath", "-ldflags", sibling.link_flags, "-o", "kubelet", _PACKAGE], workshop)
    (workshop / "kubelet").rename(kubelet)
    shutil.rmtree(workshop)


def _run_go(command: list[str], folder: Path, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=folder, env=go_environment() | environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise GhostError(f"{' '.join(command[:2])} of kubelet failed: {done.stderr.strip()}")
