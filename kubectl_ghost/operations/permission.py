"""The guard, in the form that the cluster room asks for."""

from __future__ import annotations

from kubectl_ghost.cluster.resources import Resource
from kubectl_ghost.domain import guard
from kubectl_ghost.domain.keys import Json


def permit(verb: str, resource: Resource, *, live: Json | None, body: Json | None, node: Json | None) -> None:
    """Let a write pass or raise GuardRefusal: `kubectl_ghost.domain.guard` decides by the object's kind."""
    guard.permit(resource.kind, verb, live=live, body=body, node=node)
