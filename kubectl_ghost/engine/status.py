"""`cluster status` and `cluster list`: what clusters there are and how they are, changing nothing."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine import health, kubeconfig, processes, record
from kubectl_ghost.engine.folders import ClusterFolder, Folders
from kubectl_ghost.engine.health import Component
from kubectl_ghost.engine.kwokctl import Cluster
from kubectl_ghost.engine.record import BINARY_RUNTIME, Record, State
from kubectl_ghost.engine.tools import tools_at_hand


@dataclass(frozen=True, slots=True)
class Summary:
    """One cluster in a list."""

    name: str
    status: str
    """Running, Stopped, Partial (some components), Creating (or left half made), Unreadable, or Unknown."""
    version: str
    server: str
    age: datetime.timedelta | None


@dataclass(frozen=True, slots=True)
class Details:
    """One cluster looked at closely."""

    summary: Summary
    kubeconfig: str
    components: tuple[Component, ...]

    @property
    def ready(self) -> bool:
        """Whether the cluster can be used."""
        return self.summary.status == "Running" and not any(component.fault for component in self.components)


def list_clusters(folders: Folders) -> list[Summary]:
    """Every cluster of this user, by name."""
    return [_summary(folder, folders) for folder in folders.clusters()]


def inspect(name: str, folders: Folders) -> Details | None:
    """One cluster, or nothing where there is none."""
    folder = folders.cluster(name)
    known = record.load(folder)
    if known is None:
        return None
    summary = _summary(folder, folders)
    tools = tools_at_hand(known, folders)
    found: list[Component] = []
    if tools is not None:
        cluster = Cluster(folder, known, tools)
        found = health.components(cluster) if cluster.runs_here else health.faults(cluster)
    return Details(summary, str(folder.kubeconfig), tuple(found))


def _summary(folder: ClusterFolder, folders: Folders) -> Summary:
    try:
        known = record.load(folder)
    except GhostError:
        known = None
    if known is None:
        return Summary(folder.name, "Unreadable", "", "", None)
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(known.created)
    return Summary(folder.name, _status(folder, known, folders), f"v{known.kubernetes}", server_of(folder), age)


def server_of(folder: ClusterFolder) -> str:
    """The address of the API server, or nothing where there is no kubeconfig yet."""
    for entry in kubeconfig.read(folder.kubeconfig).get("clusters") or []:
        return str(entry["cluster"]["server"])
    return ""


def _status(folder: ClusterFolder, known: Record, folders: Folders) -> str:
    if known.state is State.CREATING:
        return "Creating"
    if known.settings.runtime != BINARY_RUNTIME:
        tools = tools_at_hand(known, folders)
        if tools is None:
            return "Unknown"
        return "Stopped" if health.faults(Cluster(folder, known, tools)) else "Running"
    alive = set(processes.running(folder))
    if set(processes.COMPONENTS) <= alive:
        return "Running"
    return "Partial" if alive else "Stopped"
