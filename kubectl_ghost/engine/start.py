"""Brings the components of a cluster up through kwokctl and waits until the cluster can be used."""

from __future__ import annotations

import time
from pathlib import Path

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine import health, kwokctl, processes, stages
from kubectl_ghost.engine.kwokctl import Cluster
from kubectl_ghost.engine.logs import show_tail
from kubectl_ghost.engine.progress import Deadline, Progress

_FOUNDATIONS = ("etcd", "kube-apiserver")
"""Nothing comes up without these; the others may give up while the API server is slow, and are started again."""
_RESTARTS = 3
_KWOK = "kwok-controller"


def create(cluster: Cluster, arguments: list[str], deadline: Deadline, progress: Progress) -> None:
    """Have kwokctl make the cluster, and bring it to where `start` leaves it.

    Args:
        cluster: the one to make.
        arguments: flags of `kwokctl create cluster`.
        deadline: when to give up.
        progress: told what is waited for, and shown the failing component's log.

    Raises:
        GhostError: naming the component that failed.
    """
    _call(cluster, ["create", "cluster", *arguments], deadline, progress)
    _wait_until_ready(cluster, deadline, progress)
    stages.apply_stages(cluster, deadline)
    if cluster.runs_here:
        # kwok was there before its own kind of object was, and would look for it again after 5 s only.
        processes.stop_components(cluster.folder, [_KWOK])
        _call(cluster, ["start", "cluster"], deadline, progress)
        _wait_until_ready(cluster, deadline, progress)
        stages.wait_until_played(cluster.folder.log_of(_KWOK), progress)


def start(cluster: Cluster, deadline: Deadline, progress: Progress) -> None:
    """Have kwokctl bring up what does not run, and wait until the cluster is ready and kwok plays our stages.

    Raises:
        GhostError: naming the component that failed.
    """
    kwok_starts = cluster.runs_here and _KWOK not in processes.running(cluster.folder)
    _call(cluster, ["start", "cluster"], deadline, progress)
    _wait_until_ready(cluster, deadline, progress)
    stages.apply_stages(cluster, deadline)
    if kwok_starts:
        stages.wait_until_played(cluster.folder.log_of(_KWOK), progress)


def _call(cluster: Cluster, verb: list[str], deadline: Deadline, progress: Progress) -> None:
    def watch() -> None:
        for component in _fallen(cluster):
            if component in _FOUNDATIONS:
                raise _failure(cluster, component, "it has exited", progress)

    code = kwokctl.run(cluster, verb, deadline, watch)
    if code is None:
        unwell = health.faults(cluster)
        if unwell:
            raise _failure(cluster, unwell[0].name, unwell[0].fault, progress, deadline)
    if code != 0:
        show_tail(cluster.folder.kwokctl_log, progress)
        said = f"exit code {code}" if code is not None else f"not done after {deadline.seconds:.0f}s"
        raise GhostError(
            f'cluster "{cluster.folder.name}" did not start: kwokctl {" ".join(verb[:2])}: {said}',
            f"kwokctl's log: {cluster.folder.kwokctl_log}",
        )


def _wait_until_ready(cluster: Cluster, deadline: Deadline, progress: Progress) -> None:
    restarts = 0
    while unwell := health.faults(cluster):
        fallen = _fallen(cluster)
        if fallen and (restarts == _RESTARTS or fallen[0] in _FOUNDATIONS):
            raise _failure(cluster, fallen[0], "it has exited", progress)
        if deadline.passed:
            raise _failure(cluster, unwell[0].name, unwell[0].fault, progress, deadline)
        if fallen:
            restarts += 1
            progress(f"{fallen[0]} has exited, starting it again")
            processes.repair_pid_files(cluster.folder)
            _call(cluster, ["start", "cluster"], deadline, progress)
        time.sleep(0.1)


def _fallen(cluster: Cluster) -> list[str]:
    """The components that kwokctl has started and that have ended since, those that others depend on first."""
    # In this order: a component is noted only after it has started, so what is noted and not alive has ended.
    noted = processes.noted(cluster.folder)
    alive = processes.running(cluster.folder)
    return [name for name in processes.COMPONENTS if name in noted and name not in alive]


def _failure(
    cluster: Cluster, component: str, fault: str, progress: Progress, deadline: Deadline | None = None
) -> GhostError:
    log: Path = cluster.folder.log_of(component)
    show_tail(log, progress)
    after = f" after {deadline.seconds:.0f}s" if deadline is not None else ""
    return GhostError(
        f'cluster "{cluster.folder.name}" did not start{after}: {component}: {fault}', f"{component}'s log: {log}"
    )
