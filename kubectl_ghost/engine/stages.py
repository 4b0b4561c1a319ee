"""The kwok stages of this project: what a simulated node and pod do, as objects that kwok plays.

They are packaged data; this module gives their text, brings them into a cluster and waits until kwok plays them.
"""

from __future__ import annotations

import json
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.engine import kwokctl
from kubectl_ghost.engine.kwokctl import Cluster
from kubectl_ghost.engine.progress import Deadline, Progress

_FIELD_MANAGER = "kubectl-ghost"
_STARTED = '"msg":"Start stage controller"'
_SECONDS_FOR_KWOK = 15.0


def stage_documents() -> list[str]:
    """Each stage's YAML, comments included, nodes' stages before pods'."""
    folder = files("kubectl_ghost.data") / "stages"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


def stages_text() -> str:
    """All stages as one multi-document YAML, ready for `kubectl apply -f -`."""
    return "---\n".join(stage_documents())


def apply_stages(cluster: Cluster, deadline: Deadline) -> None:
    """Bring the stages into the cluster and read them back; retried, since the API serves a new kind a moment later.

    Raises:
        GhostError: if they are not there, as written, when the time is up.
    """
    wanted = {document["metadata"]["name"]: document["spec"] for document in map(yaml.safe_load, stage_documents())}
    while True:
        applied = kwokctl.kubectl(
            cluster,
            *("apply", "--server-side", "--force-conflicts", f"--field-manager={_FIELD_MANAGER}", "-f", "-"),
            stdin=stages_text(),
        )
        reason = applied.stderr.strip()
        if applied.returncode == 0:
            served = _served_stages(cluster)
            different = sorted(name for name, spec in wanted.items() if not contains(served.get(name), spec))
            if not different:
                return
            reason = f"the API server serves them otherwise: {', '.join(different)}"
        if deadline.passed:
            raise GhostError(f"cannot install the kwok stages on cluster {cluster.folder.name!r}: {reason}")
        time.sleep(0.2)


def _served_stages(cluster: Cluster) -> dict[str, Json]:
    listed = kwokctl.kubectl(cluster, "get", "stages.kwok.x-k8s.io", "-o", "json")
    if listed.returncode != 0:
        return {}
    return {item["metadata"]["name"]: item["spec"] for item in json.loads(listed.stdout)["items"]}


def contains(served: Any, wanted: Any) -> bool:
    """Whether an object holds all of another; the API server adds defaults, and drops what it does not know."""
    if isinstance(wanted, dict) and isinstance(served, dict):
        return all(contains(served.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(served, list):
        return len(served) == len(wanted) and all(map(contains, served, wanted))
    return bool(served == wanted)


def wait_until_played(log: Path, progress: Progress) -> None:
    """Wait until a kwok that has just been started has taken up the stages of nodes and of pods.

    kwok says so in its log only, which begins anew with each start. Should a kwok say it in other words, the wait ends
    with a warning, since the cluster is most likely well.
    """
    deadline = Deadline(_SECONDS_FOR_KWOK)
    while kinds := kinds_not_played(log.read_text(encoding="utf-8", errors="replace")):
        if deadline.passed:
            progress(f"warning: kwok has not said that it plays the stages of {' and '.join(sorted(kinds))}: see {log}")
            return
        time.sleep(0.05)


def kinds_not_played(log: str) -> set[str]:
    """Which of Node and Pod a log of kwok's does not say to be played."""
    said = [line for line in log.splitlines() if _STARTED in line]
    return {kind for kind in ("Node", "Pod") if not any(f'"Kind":"{kind}"' in line for line in said)}
