"""`cluster up`: makes a cluster, takes up one that is stopped or half made, or finds that there is nothing to do."""

from __future__ import annotations

import dataclasses
import datetime
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine import kubeconfig, kwokctl, processes, record, stages
from kubectl_ghost.engine.down import discard
from kubectl_ghost.engine.folders import DEFAULT_CLUSTER, ClusterFolder, Folders
from kubectl_ghost.engine.kwokctl import Cluster, Tools
from kubectl_ghost.engine.lock import exclusive
from kubectl_ghost.engine.ports import choose_ports
from kubectl_ghost.engine.progress import Deadline, Progress
from kubectl_ghost.engine.record import Record, Settings, State
from kubectl_ghost.engine.start import create, start
from kubectl_ghost.engine.tools import require_tools
from kubectl_ghost.engine.versions import version_set


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for; a setting that is None (or False) was not asked for, and any will do."""

    name: str = DEFAULT_CLUSTER
    version: str | None = None
    runtime: str | None = None
    feature_gates: str | None = None
    disable_qps_limits: bool = False
    audit_policy: str | None = None
    """The policy's text."""
    bin_dir: Path | None = None
    merge_kubeconfig: bool = False
    timeout: float = 120.0


class Outcome(StrEnum):
    """What `up` found to do."""

    CREATED = "created"
    STARTED = "started"
    UNCHANGED = "unchanged"


def up(request: Request, folders: Folders, progress: Progress) -> tuple[Cluster, Outcome]:
    """Bring a cluster up, whatever state it is in, and return when it can be used.

    Raises:
        GhostError: if it runs with other settings than those asked for, or a component does not come up.
    """
    folder = folders.cluster(request.name)
    with exclusive(folders.lock(f"cluster-{folder.name}"), progress, f"another command on cluster {folder.name}"):
        existing = record.load(folder)
        if existing is not None and existing.state is State.CREATED:
            _refuse_other_settings(existing.settings, request)
            cluster, outcome = _take_up(existing, folder, request, folders, progress)
        else:
            cluster, outcome = _create(existing, folder, request, folders, progress), Outcome.CREATED
        if request.merge_kubeconfig:
            cluster = _merge(cluster, progress)
    return cluster, outcome


def asked_settings(request: Request) -> dict[str, Any]:
    """The fields of Settings that were asked for."""
    asked = {
        "version": version_set(request.version).minor if request.version else None,
        "runtime": request.runtime,
        "feature_gates": request.feature_gates,
        "disable_qps_limits": request.disable_qps_limits or None,
        "audit_policy": request.audit_policy,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _refuse_other_settings(existing: Settings, request: Request) -> None:
    for name, wanted in asked_settings(request).items():
        if wanted != getattr(existing, name):
            raise GhostError(
                f'cluster "{request.name}" exists with another setting of {name.replace("_", " ")}',
                f"delete it first: kubectl ghost cluster down --name {request.name}",
            )


def _create(
    half_made: Record | None, folder: ClusterFolder, request: Request, folders: Folders, progress: Progress
) -> Cluster:
    settings = Settings(**{"version": version_set().minor, **asked_settings(request)})
    versions = version_set(settings.version)
    tools = require_tools(versions, settings.runtime, folders, progress, request.bin_dir)
    deadline = Deadline(request.timeout)
    if half_made is not None:
        progress(f'cluster "{folder.name}" was left half made, making it anew')
        discard(folder, half_made, tools)
    with exclusive(folders.lock("ports"), progress, "another cluster that is being made"):
        reserved = _reserved(folder, settings, tools, folders)
    cluster = Cluster(folder, reserved, tools)
    policy = folder.audit_policy if settings.audit_policy else None
    if policy is not None:
        policy.write_text(settings.audit_policy, encoding="utf-8")
    folder.kwokctl_config.write_text(kwokctl.configuration(settings, cluster.record.ports, policy), encoding="utf-8")
    progress(f'creating cluster "{folder.name}" (Kubernetes {versions.kubernetes}, kwok {versions.kwok})')
    arguments = ["--config", str(folder.kwokctl_config), "--timeout", f"{deadline.seconds:.0f}s"]
    try:
        create(cluster, arguments, deadline, progress)
    except BaseException:
        # The logs stay to be read; the record says that the next `up` has to begin anew.
        processes.stop(folder)
        raise
    return _remember(cluster, state=State.CREATED)


def _reserved(folder: ClusterFolder, settings: Settings, tools: Tools, folders: Folders) -> Record:
    """Choose ports and record them, so that neither a cluster made meanwhile nor one that is stopped has the same."""
    others = [known for other in folders.clusters() if (known := _known(other)) is not None]
    reserved = Record(
        settings=settings,
        state=State.CREATING,
        kubernetes=version_set(settings.version).kubernetes,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        ports=choose_ports({port for other in others for port in other.ports.values()}),
        bin_dir=str(Path(tools.kubectl).parent),
    )
    record.save(folder, reserved)
    return reserved


def _known(folder: ClusterFolder) -> Record | None:
    """Another cluster's record; one that cannot be read is that cluster's trouble, not this one's."""
    try:
        return record.load(folder)
    except GhostError:
        return None


def _take_up(
    existing: Record, folder: ClusterFolder, request: Request, folders: Folders, progress: Progress
) -> tuple[Cluster, Outcome]:
    versions = version_set(existing.settings.version)
    recorded = Path(existing.bin_dir)
    bin_dir = request.bin_dir or (recorded if (recorded / "kubectl").exists() else None)
    tools = require_tools(versions, existing.settings.runtime, folders, progress, bin_dir)
    cluster = Cluster(folder, existing, tools)
    deadline = Deadline(request.timeout)
    if not cluster.runs_here or set(processes.COMPONENTS) - set(processes.running(folder)):
        progress(f'starting cluster "{folder.name}"')
        processes.repair_pid_files(folder)
        _relink(cluster)
        start(cluster, deadline, progress)
        return _remember(cluster, bin_dir=str(Path(tools.kubectl).parent)), Outcome.STARTED
    stages.apply_stages(cluster, deadline)
    return cluster, Outcome.UNCHANGED


def _relink(cluster: Cluster) -> None:
    """kwokctl runs components over links into the folder of binaries; that may have moved since."""
    if cluster.tools.binaries is None:
        return
    for link in (cluster.folder.components / "bin").iterdir():
        if link.is_symlink():
            target = Path(cluster.tools.binaries[link.readlink().name])
            if link.readlink() != target:
                link.unlink()
                link.symlink_to(target)


def _remember(cluster: Cluster, **changes: Any) -> Cluster:
    changed = dataclasses.replace(cluster.record, **changes)
    record.save(cluster.folder, changed)
    return dataclasses.replace(cluster, record=changed)


def _merge(cluster: Cluster, progress: Progress) -> Cluster:
    target = kubeconfig.users_kubeconfig(cluster.folder.kubeconfig)
    before = kubeconfig.merge(cluster.folder.kubeconfig, target)
    progress(f"merged the cluster's context into {target}")
    if cluster.record.merged_into == str(target):
        return cluster
    return _remember(cluster, merged_into=str(target), context_before=before)
