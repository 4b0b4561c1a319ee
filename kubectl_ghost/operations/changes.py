"""What an operation did to an object: the one thing that operations hand back to commands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from kubectl_ghost.cluster.resources import Resource
from kubectl_ghost.domain.keys import Json


class Verb(StrEnum):
    """kubectl's words for what happened."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    CORDONED = "cordoned"
    ALREADY_CORDONED = "already cordoned"
    UNCORDONED = "uncordoned"
    ALREADY_UNCORDONED = "already uncordoned"
    EVICTING = "evicting"
    EVICTED = "evicted"
    FAILED = "marked as failed"
    ANNOTATED = "annotated"
    DRAINED = "drained"
    REBOOTING = "rebooting"
    ALREADY_REBOOTING = "already rebooting"
    REBOOTED = "rebooted"
    ADOPTED = "adopted"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Change:
    """One object and what happened to it; `body` is the object as it now is, or as it was before it was deleted."""

    resource: Resource
    verb: Verb
    body: Json

    def brief(self) -> Change:
        """The same with the object's metadata alone: thousands of whole nodes are a lot to keep."""
        metadata = self.body["metadata"]
        kept = {key: metadata[key] for key in ("name", "namespace", "uid") if key in metadata}
        return replace(self, body={"metadata": kept})

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        """The object's namespace, None for what belongs to the cluster."""
        namespace: str | None = self.body["metadata"].get("namespace")
        return namespace
