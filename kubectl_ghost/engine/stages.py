"""The kwok stages of this project: what a simulated node and pod do, as objects that kwok plays.

They are packaged data; this module gives their text, brings them into a cluster and waits until kwok plays them.
"""

from __future__ import annotations

import json
import time
from importlib.resources import files
from pathlib import Path
from typing import Final

import yaml

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.engine import kwokctl
from kubectl_ghost.engine.kwokctl import Cluster
from kubectl_ghost.engine.progress import Deadline, Progress

NODE_DOWN_ANNOTATION: Final = "kubectl-ghost.dev/node-down"
"""On a node: it goes NotReady and stays so until the annotation is gone; its value is the condition's message."""
DURATION_ANNOTATION: Final = "kubectl-ghost.dev/duration"
"""On a Job's pod: how long it runs before it succeeds, in Go's notation; at once without it."""

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
        GhostError: if they are not there, exactly as written, when the time is up.
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
            different = sorted(name for name, spec in wanted.items() if served.get(name) != spec)
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


def wait_until_played(log: Path, begin: int, progress: Progress) -> None:
    """Wait until kwok, started when its log had `begin` bytes, has taken up the stages of nodes and of pods.

    kwok says so in its log only. Should a kwok say it in other words, the wait ends with a warning, since the cluster
    is most likely well.
    """
    deadline = Deadline(_SECONDS_FOR_KWOK)
    while not deadline.passed:
        if not _kinds_not_played(log, begin):
            return
        time.sleep(0.05)
    kinds = " and ".join(sorted(_kinds_not_played(log, begin)))
    progress(f"warning: kwok has not said that it plays the stages of {kinds}: see {log}")


def _kinds_not_played(log: Path, begin: int) -> set[str]:
    waited_for = {"Node", "Pod"}
    with log.open("rb") as stream:
        stream.seek(begin)
        for line in stream.read().decode("utf-8", errors="replace").splitlines():
            if _STARTED in line:
                waited_for -= {kind for kind in waited_for if f'"Kind":"{kind}"' in line}
    return waited_for
