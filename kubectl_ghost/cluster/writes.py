"""Writing objects, every single write past the guard.

A `Writer` is the only thing in the project that changes a cluster, and each of its methods begins with the guard, dry
runs included: what would be refused is refused when it is tried out. `tests/unit/cluster/test_writes.py` keeps it so.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Protocol

from kubectl_ghost.cluster import requests
from kubectl_ghost.cluster.errors import NotFound
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.requests import Request
from kubectl_ghost.cluster.resources import PODS, Resource
from kubectl_ghost.cluster.transport import Transport
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GuardRefusal
from kubectl_ghost.domain.keys import Json


class Guard(Protocol):
    """Decides about one write before it is sent."""

    def __call__(
        self, verb: str, resource: Resource, *, live: Json | None, body: Json | None, node: Json | None
    ) -> None:
        """Permit the write by returning.

        Args:
            verb: `create`, `patch`, `replace`, `delete`.
            live: the object as it was read, None for a create.
            body: what is sent: the new object, or the patch (for a subresource, with that field in it).
            node: the node that the object belongs to, where the caller knows it.

        Raises:
            GuardRefusal: the write is not permitted.
        """


class Writer(Reader):
    """Reads and writes over one transport. Safe to use from several threads."""

    def __init__(self, transport: Transport, guard: Guard, dry_run: DryRun = DryRun.NONE, *, echo: bool = True) -> None:
        """Write over a transport.

        Args:
            echo: False where nobody looks at what is created: the server then answers with its metadata alone, which
                is less to send and to parse.
        """
        super().__init__(transport)
        self._guard = guard
        self._echo = echo
        self.dry_run = dry_run

    def create(
        self,
        resource: Resource,
        body: Json,
        *,
        node: Json | None = None,
        namespace: str | None = None,
        whole: bool = False,
        rehearse: bool = False,
    ) -> Json:
        """Create an object and return it as the server made it.

        Args:
            namespace: where, when the object does not say so itself.
            whole: return all of it, also over a connection without echo.
            rehearse: let the server store nothing, whatever the mode: to learn what it would make of the object.

        Raises:
            AlreadyExists: there is one of that name.
            GuardRefusal: the guard does not permit it, as for all methods here.
        """
        namespace = (body.get("metadata") or {}).get("namespace") or namespace
        if resource.namespaced and not namespace:
            raise ValueError(f"creating one of {resource.plural} needs a namespace")
        self._guard("create", resource, live=None, body=body, node=node)
        if self.dry_run is DryRun.CLIENT and not rehearse:
            return body
        dry_run = self._on_server or rehearse
        echo = self._echo or whole or rehearse
        return self._send(requests.create(resource, body, namespace=namespace, dry_run=dry_run, echo=echo))

    def patch(
        self,
        resource: Resource,
        live: Json,
        patch: Json,
        *,
        subresource: str | None = None,
        node: Json | None = None,
    ) -> Json:
        """Apply a JSON merge patch to the object that was read, and return the outcome.

        Raises:
            Conflict: it changed since it was read.
            NotFound: it is gone.
        """
        self._guard("patch", resource, live=live, body=patch, node=node)
        if self.dry_run is DryRun.CLIENT:
            return merged(live, patch)
        return self._send(requests.merge_patch(resource, live, patch, subresource=subresource, dry_run=self._on_server))

    def replace(self, resource: Resource, live: Json, body: Json, *, node: Json | None = None) -> Json:
        """Put `body` in the place of the object that was read, and return the outcome.

        Raises:
            Conflict: it changed since it was read.
            NotFound: it is gone.
        """
        self._guard("replace", resource, live=live, body=body, node=node)
        if self.dry_run is DryRun.CLIENT:
            return body
        return self._send(requests.replace(resource, live, body, dry_run=self._on_server, echo=self._echo))

    def delete(
        self,
        resource: Resource,
        live: Json,
        *,
        node: Json | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Delete the object that was read. That it is gone already is what was wanted.

        Raises:
            Conflict: another object has its name now.
        """
        self._guard("delete", resource, live=live, body=None, node=node)
        if self.dry_run is DryRun.CLIENT:
            return
        request = requests.delete(resource, live, dry_run=self._on_server, grace_seconds=grace_seconds)
        try:
            self._ask(request)
        except NotFound:
            return

    def evict(self, pod: Json, *, node: Json | None, grace_seconds: int | None = None) -> None:
        """Evict the pod that was read, as far as its PodDisruptionBudgets allow. That it is gone already is fine.

        Raises:
            Blocked: a budget does not allow it now.
            Conflict: another pod has its name now.
        """
        self._guard("delete", PODS, live=pod, body=None, node=node)
        if self.dry_run is DryRun.CLIENT:
            return
        try:
            self._ask(requests.evict(PODS, pod, dry_run=self._on_server, grace_seconds=grace_seconds))
        except NotFound:
            return

    def delete_collection(
        self,
        resource: Resource,
        label_selector: str,
        listed: Sequence[Json],
        *,
        nodes: Sequence[Json | None] | None = None,
        namespace: str | None = None,
        grace_seconds: int | None = None,
        spare: str | None = None,
    ) -> None:
        """Delete all that a label selector matches, in one request.

        Args:
            listed: what the selector matched when it was last looked at; the guard sees every one of them. The label
                must be one that nobody but this tool sets, since more may match by the time the server looks.
            nodes: the node that each of `listed` belongs to, in the same order.
            spare: the name of one that is left.

        Raises:
            GuardRefusal: one of them may not be deleted, or the selector is empty and means everything.
        """
        if not label_selector.strip():
            raise GuardRefusal(f"refusing to delete every one of {resource.plural}: the label selector is empty")
        for live, node in zip(listed, nodes or [None] * len(listed), strict=True):
            self._guard("delete", resource, live=live, body=None, node=node)
        if self.dry_run is DryRun.CLIENT or not listed:
            return
        self._ask(
            requests.delete_collection(
                resource,
                label_selector,
                namespace=namespace,
                dry_run=self._on_server,
                grace_seconds=grace_seconds,
                spare=spare,
            )
        )

    @property
    def _on_server(self) -> bool:
        return self.dry_run is DryRun.SERVER

    def _send(self, request: Request) -> Json:
        return self._object(request)


def merged(target: Json, patch: Json) -> Json:
    """What a JSON merge patch (RFC 7386) makes of an object. Neither argument is changed."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            if not isinstance(before, dict):
                before = {}
            result[key] = merged(before, value)
        else:
            result[key] = copy.deepcopy(value)
    return result
