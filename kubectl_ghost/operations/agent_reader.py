"""The metrics agent's way to the cluster when it runs in this process: the command's own connection."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from kubectl_ghost.cluster.errors import Conflict, Gone, NotFound
from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_CLAIMS, Resource
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.agent_objects import SELECTORS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.holders import record_patch
from kubectl_ghost.domain.keys import Json

_RESOURCES = {resource.plural: resource for resource in (NODES, PODS, RESOURCE_CLAIMS)}


class AgentReader:
    """`ghost_agent.watcher.ClusterReader` over a connection."""

    def __init__(self, writer: Writer, expired: Callable[[str], GhostError]) -> None:
        """Read with a connection.

        Args:
            expired: makes the agent's own error for a version that is too old.
        """
        self._writer, self._expired = writer, expired

    def list(self, collection: str, keep: Callable[[Json], Json]) -> tuple[list[Json], str]:
        """What is kept of every object of a collection, and its version; "" where the server has no such type."""
        resource = _RESOURCES[collection]
        if resource is RESOURCE_CLAIMS and not self._writer.served(resource):
            return [], ""
        labels, fields = _selectors(resource)
        found = self._writer.list(resource, label_selector=labels, field_selector=fields, keep=keep)
        return found.items, found.resource_version

    def watch(self, collection: str, version: str, seconds: float) -> Iterator[tuple[str, Json]]:
        """Every event of a collection after a version, for so long."""
        resource = _RESOURCES[collection]
        labels, fields = _selectors(resource)
        try:
            yield from self._writer.watch_once(
                resource, resource_version=version, seconds=seconds, label_selector=labels, field_selector=fields
            )
        except Gone as error:
            raise self._expired(error.message) from error

    def record(self, pod: Json, node: Json, devices: tuple[str, ...]) -> None:
        """Write down on a pod which devices it has; one that changes or ends just now comes again."""
        with contextlib.suppress(Conflict, NotFound):
            self._writer.patch(PODS, pod, record_patch(devices), node=node)


def _selectors(resource: Resource) -> tuple[str | None, str | None]:
    query = SELECTORS[resource.plural]
    return query.get("labelSelector"), query.get("fieldSelector")
