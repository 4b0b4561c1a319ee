"""`cluster down`: ends a cluster and removes everything that `up` made, also of one that was left half made."""

from __future__ import annotations

import shutil
from pathlib import Path

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine import kubeconfig, kwokctl, processes, record
from kubectl_ghost.engine.folders import ClusterFolder, Folders
from kubectl_ghost.engine.kwokctl import Cluster, Tools
from kubectl_ghost.engine.lock import exclusive
from kubectl_ghost.engine.progress import Deadline, Progress
from kubectl_ghost.engine.record import BINARY_RUNTIME, Record
from kubectl_ghost.engine.tools import tools_at_hand

_SECONDS_FOR_KWOKCTL = 120.0


def down(name: str, folders: Folders, progress: Progress) -> bool:
    """Remove a cluster; whether there was one."""
    folder = folders.cluster(name)
    with exclusive(folders.lock(f"cluster-{folder.name}"), progress, f"another command on cluster {folder.name}"):
        if not folder.root.exists():
            return False
        try:
            known = record.load(folder)
        except GhostError as unreadable:
            progress(f"warning: {unreadable.message}")
            known = None
        discard(folder, known, tools_at_hand(known, folders) if known is not None else None)
    return True


def discard(folder: ClusterFolder, known: Record | None, tools: Tools | None) -> None:
    """Delete the cluster through kwokctl, end what is left of it, and remove its entries and its folder."""
    processes.repair_pid_files(folder)
    if known is not None and tools is not None and (folder.components / "kwok.yaml").exists():
        code = kwokctl.run(Cluster(folder, known, tools), ["delete", "cluster"], Deadline(_SECONDS_FOR_KWOKCTL))
        if code != 0 and known.settings.runtime != BINARY_RUNTIME:
            raise GhostError(
                f'cannot delete cluster "{folder.name}": kwokctl delete cluster: exit code {code}',
                f"kwokctl's log: {folder.kwokctl_log}",
            )
    processes.stop(folder)
    if known is not None and known.merged_into:
        kubeconfig.unmerge(f"kwok-{folder.name}", Path(known.merged_into), known.context_before)
    shutil.rmtree(folder.root, ignore_errors=True)
