"""What each verb is in HTTP. Pure: nothing is sent here, so every rule about a request can be read and tested alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_ghost.cluster.resources import Resource
from kubectl_ghost.domain.keys import Json

FIELD_MANAGER: Final = "kubectl-ghost"
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """One request, ready to be sent. `big` asks for a compressed answer where that pays."""

    method: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content_type: str = JSON
    accept: str = JSON
    big: bool = False


def get(resource: Resource, name: str, namespace: str | None = None) -> Request:
    """Read one object."""
    return Request("GET", resource.path(namespace, name))


def list_page(
    resource: Resource,
    *,
    namespace: str | None = None,
    label_selector: str | None = None,
    field_selector: str | None = None,
    limit: int = 0,
    token: str = "",
    metadata_only: bool = False,
) -> Request:
    """Read a page of a collection; the whole of it with a limit of 0.

    Args:
        token: the page before says where it ended.
    """
    query: dict[str, str | int] = _selectors(label_selector, field_selector)
    if limit:
        query["limit"] = limit
    if token:
        query["continue"] = token
    accept = JSON
    if metadata_only:
        accept = _METADATA_LIST
    return Request("GET", resource.path(namespace), query, accept=accept, big=True)


def table(resource: Resource, *, label_selector: str | None = None, field_selector: str | None = None) -> Request:
    """Read a collection as the table that the server prints of it, without the objects."""
    query: dict[str, str | int] = {**_selectors(label_selector, field_selector), "includeObject": "None"}
    return Request("GET", resource.path(), query, accept=_TABLE)


def watch(
    resource: Resource,
    *,
    namespace: str | None = None,
    resource_version: str = "",
    label_selector: str | None = None,
    field_selector: str | None = None,
    seconds: int | None = None,
) -> Request:
    """Hear of every change to a collection after a version."""
    query: dict[str, str | int] = {"watch": "true", "allowWatchBookmarks": "true"}
    query |= _selectors(label_selector, field_selector)
    if resource_version:
        query["resourceVersion"] = resource_version
    if seconds is not None:
        query["timeoutSeconds"] = seconds
    return Request("GET", resource.path(namespace), query)


def create(resource: Resource, body: Json, *, namespace: str | None, dry_run: bool, echo: bool = True) -> Request:
    """Create an object. Without `echo` the answer is its metadata alone."""
    return Request("POST", resource.path(namespace), _write_query(dry_run), body, accept=_echo(echo))


def merge_patch(resource: Resource, live: Json, patch: Json, *, subresource: str | None, dry_run: bool) -> Request:
    """Patch the very object that was read, in the version that was read: anything else is a conflict."""
    metadata = {**(patch.get("metadata") or {}), **_identity(live)}
    return Request(
        "PATCH",
        _path_of(resource, live, subresource),
        _write_query(dry_run),
        {**patch, "metadata": metadata},
        MERGE_PATCH,
    )


def replace(resource: Resource, live: Json, body: Json, *, dry_run: bool, echo: bool = True) -> Request:
    """Put a new object in the place of the one that was read, in the version that was read."""
    metadata = {**(body.get("metadata") or {}), **_identity(live)}
    return Request(
        "PUT",
        _path_of(resource, live),
        _write_query(dry_run),
        {**body, "metadata": metadata},
        accept=_echo(echo),
    )


def delete(resource: Resource, live: Json, *, dry_run: bool, grace_seconds: int | None = None) -> Request:
    """Delete the very object that was read, whatever its version: not one that took its name since."""
    options = _delete_options(dry_run, grace_seconds)
    options["preconditions"] = {"uid": live["metadata"]["uid"]}
    return Request("DELETE", _path_of(resource, live), body=options, accept=_METADATA)


def evict(resource: Resource, live: Json, *, dry_run: bool, grace_seconds: int | None = None) -> Request:
    """Evict the very pod that was read: a delete that PodDisruptionBudgets have a say in."""
    options = _delete_options(dry_run, grace_seconds)
    options["preconditions"] = {"uid": live["metadata"]["uid"]}
    metadata = {key: live["metadata"][key] for key in ("name", "namespace")}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
    return Request("POST", _path_of(resource, live, "eviction"), _write_query(dry_run), body)


def delete_collection(
    resource: Resource,
    label_selector: str,
    *,
    namespace: str | None,
    dry_run: bool,
    grace_seconds: int | None = None,
    spare: str | None = None,
) -> Request:
    """Delete everything that a label selector matches, but for the object named `spare`.

    Raises:
        ValueError: the selector is empty, which to the server would mean everything there is.
    """
    if not label_selector.strip():
        raise ValueError(f"refusing to delete every one of {resource.plural}: the label selector is empty")
    return Request(
        "DELETE",
        resource.path(namespace),
        _selectors(label_selector, f"metadata.name!={spare}" if spare else None),
        _delete_options(dry_run, grace_seconds),
        accept=_METADATA_LIST,
    )


def _selectors(label_selector: str | None, field_selector: str | None) -> dict[str, str | int]:
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in given.items() if value}


def _write_query(dry_run: bool) -> dict[str, str | int]:
    query: dict[str, str | int] = {"fieldManager": FIELD_MANAGER}
    if dry_run:
        query["dryRun"] = "All"
    return query


def _delete_options(dry_run: bool, grace_seconds: int | None) -> Json:
    # A delete with a body is governed by the body alone: the server does not look for dryRun in the query then.
    options: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if dry_run:
        options["dryRun"] = ["All"]
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options


def _identity(live: Json) -> Json:
    return {"uid": live["metadata"]["uid"], "resourceVersion": live["metadata"]["resourceVersion"]}


def _path_of(resource: Resource, live: Json, subresource: str | None = None) -> str:
    metadata = live["metadata"]
    return resource.path(metadata.get("namespace"), metadata["name"], subresource)


def _echo(echo: bool) -> str:
    if echo:
        return JSON
    return _METADATA
