"""What an operation did to an object: the one thing that operations hand back to commands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kubectl_ghost.cluster.resources import Resource
from kubectl_ghost.domain.keys import Json


class Verb(StrEnum):
    """kubectl's words for what happened."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """One object and what happened to it; `body` is the object as it now is, or as it was before it was deleted."""

    resource: Resource
    verb: Verb
    body: Json

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        """The object's namespace, None for what belongs to the cluster."""
        namespace: str | None = self.body["metadata"].get("namespace")
        return namespace
