"""Which kwokctl and kubectl a command drives a cluster with."""

from __future__ import annotations

import shutil
from pathlib import Path

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine.binaries import find_binaries, require_binaries
from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.kwokctl import Tools
from kubectl_ghost.engine.progress import Progress
from kubectl_ghost.engine.record import BINARY_RUNTIME, Record
from kubectl_ghost.engine.versions import VersionSet, version_set


def require_tools(
    versions: VersionSet, runtime: str, folders: Folders, progress: Progress, bin_dir: Path | None
) -> Tools:
    """What a cluster of this runtime needs: a whole set of binaries, or for containers kwokctl and kubectl alone."""
    if runtime == BINARY_RUNTIME:
        return Tools.of(require_binaries(versions, folders, progress, bin_dir))
    found = find_binaries(versions, folders, bin_dir)
    if found is not None:
        return Tools(found["kwokctl"], found["kubectl"], None)
    on_path = _on_path()
    if on_path is None:
        raise GhostError(
            f"runtime {runtime} needs kwokctl and kubectl, and they are not on PATH",
            "install them, or build them with: kubectl ghost cluster build",
        )
    return on_path


def tools_at_hand(record: Record, folders: Folders) -> Tools | None:
    """What there is to drive an existing cluster with, building nothing: looking at it or deleting it must not."""
    kwokctl, kubectl = Path(record.bin_dir) / "kwokctl", Path(record.bin_dir) / "kubectl"
    if kwokctl.exists() and kubectl.exists():
        return Tools(str(kwokctl), str(kubectl), None)
    found = find_binaries(version_set(record.settings.version), folders)
    return Tools.of(found) if found is not None else _on_path()


def _on_path() -> Tools | None:
    kwokctl, kubectl = shutil.which("kwokctl"), shutil.which("kubectl")
    return Tools(kwokctl, kubectl, None) if kwokctl and kubectl else None
