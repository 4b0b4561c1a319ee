"""What a cluster was asked to be and how far it has come, on disk, so that any later command can take it up."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine.folders import ClusterFolder

BINARY_RUNTIME = "binary"


class State(StrEnum):
    """How far a cluster has come. One that was interrupted while CREATING is made anew; a CREATED one is started."""

    CREATING = "creating"
    CREATED = "created"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user can ask of a cluster and not change afterwards."""

    version: str
    """The Kubernetes minor."""
    runtime: str = BINARY_RUNTIME
    feature_gates: str = ""
    disable_qps_limits: bool = False
    audit_policy: str = ""
    """The text of the audit policy, not its path: the file may change or vanish."""


@dataclass(frozen=True, slots=True)
class Record:
    """One cluster's record."""

    settings: Settings
    state: State
    kubernetes: str
    created: str
    ports: dict[str, int]
    bin_dir: str
    merged_into: str = ""
    """The kubeconfig that this cluster's context was merged into, if it was."""
    context_before: str = ""
    """What that kubeconfig's current context was before."""


def load(folder: ClusterFolder) -> Record | None:
    """The record of a cluster, or nothing where there is no cluster."""
    try:
        raw = json.loads(folder.record.read_text(encoding="utf-8"))
        settings = Settings(**raw.pop("settings"))
        return Record(settings=settings, state=State(raw.pop("state")), **raw)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        raise GhostError(
            f"the record of cluster {folder.name!r} cannot be read: {folder.record}: {error}",
            f"remove it with: kubectl ghost cluster down --name {folder.name}",
        ) from error


def save(folder: ClusterFolder, record: Record) -> None:
    """Write a record whole or not at all."""
    folder.root.mkdir(parents=True, exist_ok=True)
    write_whole(folder.record, json.dumps(asdict(record), indent=2) + "\n")


def write_whole(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file's content at once, so that whoever reads it, or kills us, never meets half of it."""
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.chmod(mode)
    unfinished.replace(path)
