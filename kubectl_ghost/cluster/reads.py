"""Reading objects. A `Reader` has no way to write, so what is given one provably changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kubectl_ghost.cluster import codec, requests
from kubectl_ghost.cluster.errors import Gone, NotFound, NotKubernetes
from kubectl_ghost.cluster.requests import Request
from kubectl_ghost.cluster.resources import Resource
from kubectl_ghost.cluster.transport import Transport
from kubectl_ghost.domain.keys import Json

CHUNK: Final = 500
"""kubectl's page size."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a collection held at one resource version, from which a watch can go on."""

    items: list[Json] = field(default_factory=list)
    resource_version: str = ""


class Reader:
    """Reads over one transport. Safe to use from several threads."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._discovered: dict[str, frozenset[str]] = {}
        self._versions: Json | None = None

    @property
    def transport(self) -> Transport:
        """The way to the server, for what is not about objects (`/version`, `/metrics`)."""
        return self._transport

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Json:
        """One object.

        Raises:
            NotFound: there is none of that name.
            ApiError: the server refused or could not be asked, as for all methods here.
        """
        return self._object(requests.get(resource, name, namespace))

    def find(self, resource: Resource, name: str, namespace: str | None = None) -> Json | None:
        """One object, or None when there is none of that name or the server does not know the type."""
        try:
            return self.get(resource, name, namespace)
        except NotFound:
            return None

    def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        chunk: int = CHUNK,
        metadata_only: bool = False,
        keep: Callable[[Json], Json] | None = None,
    ) -> Listing:
        """All objects of a type that match, each with its `apiVersion` and `kind`.

        Args:
            namespace: None for all namespaces.
            chunk: how many to ask for at a time; 0 for all at once, which is faster and takes the server more memory.
            metadata_only: leave spec and status out.
            keep: what to keep of each object, page by page, so that a large collection is never there as a whole.
        """

        def page(limit: int, token: str) -> Request:
            return requests.list_page(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                token=token,
                metadata_only=metadata_only,
            )

        items: list[Json] = []
        limit, token = chunk, ""
        while True:
            try:
                answer = self._object(page(limit, token))
            except Gone:
                if not token:
                    raise
                # The pages so far are of a state that the server has forgotten. All at once cannot expire.
                items, limit, token = [], 0, ""
                continue
            page_items = (_typed(item, resource) for item in _items(answer, resource, self._transport.target.server))
            items += map(keep, page_items) if keep else page_items
            metadata = _metadata(answer)
            token = str(metadata.get("continue") or "")
            if not token:
                return Listing(items, str(metadata.get("resourceVersion") or ""))

    def printed(
        self, resource: Resource, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Iterator[dict[str, str]]:
        """The rows that the server itself prints of a collection, by column: a twentieth of the objects' cost."""
        answer = self._object(requests.table(resource, label_selector=label_selector, field_selector=field_selector))
        titles = [str(column.get("name")) for column in answer.get("columnDefinitions") or ()]
        for row in answer.get("rows") or ():
            yield dict(zip(titles, map(str, row.get("cells") or ()), strict=False))

    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        timeout: float | None = None,
    ) -> Iterator[tuple[str, Json]]:
        """Every change after a version: ADDED, MODIFIED or DELETED, and the object.

        A watch that the server ends, or that breaks, is taken up again where it stopped.

        Args:
            timeout: seconds after which the iterator ends, up to one later when changes keep coming; None for never.

        Raises:
            Gone: the version is too old (from the iterator): list again.
        """
        from kubectl_ghost.cluster import watching  # most commands look once

        since = partial(
            _watch_request,
            resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        return watching.follow(self._transport, since, resource_version, timeout)

    def watch_once(
        self,
        resource: Resource,
        *,
        resource_version: str,
        seconds: float,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Iterator[tuple[str, Json]]:
        """As `watch`, of all namespaces, but one watch alone and with its bookmarks: for who keeps track himself.

        Raises:
            Gone: the version is too old (from the iterator): list again.
            ApiError: the watch could not be begun, or was cut off.
        """
        from kubectl_ghost.cluster import watching

        since = partial(_watch_request, resource, label_selector=label_selector, field_selector=field_selector)
        return watching.once(self._transport, since, resource_version, seconds)

    def served(self, resource: Resource) -> bool:
        """Whether this server has the type. Asked once for each group and version."""
        root = resource.root
        if root not in self._discovered:
            try:
                answer = self._object(Request("GET", root))
                names = frozenset(_names(answer, self._transport.target.server))
            except NotFound:
                names = frozenset()
            self._discovered[root] = names
        return resource.plural in self._discovered[root]

    def server_version(self) -> tuple[int, int]:
        """Kubernetes' major and minor version, without a vendor's suffix: `1` and `34+` are (1, 34)."""
        answer = self._version()
        return _digits(str(answer.get("major", ""))), _digits(str(answer.get("minor", "")))

    def git_version(self) -> str:
        """Kubernetes' version in full, a vendor's suffix included: `v1.36.1`, `v1.34.2-gke.100`.

        Raises:
            NotKubernetes: the server does not say.
        """
        version = self._version().get("gitVersion")
        if not isinstance(version, str) or not version:
            raise NotKubernetes("no Kubernetes version", self._transport.target.server)
        return version

    def _version(self) -> Json:
        if self._versions is None:
            self._versions = self._object(Request("GET", "/version"))
        return self._versions

    def _object(self, request: Request) -> Json:
        return codec.decode(self._ask(request), self._transport.target.server)

    def _ask(self, request: Request) -> bytes:
        return self._transport.request(
            request.method,
            request.path,
            query=request.query,
            body=request.body,
            content_type=request.content_type,
            accept=request.accept,
            big=request.big,
        )


def _watch_request(
    resource: Resource,
    version: str,
    seconds: int | None,
    *,
    namespace: str | None = None,
    label_selector: str | None = None,
    field_selector: str | None = None,
) -> Request:
    return requests.watch(
        resource,
        namespace=namespace,
        resource_version=version,
        label_selector=label_selector,
        field_selector=field_selector,
        seconds=seconds,
    )


def _items(answer: Json, resource: Resource, server: str) -> list[Json]:
    items = answer.get("items", ())
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise NotKubernetes(f"not a list of {resource.plural}", server)
    return items


def _metadata(answer: Json) -> Json:
    found = answer.get("metadata")
    if not isinstance(found, dict):
        return {}
    return found


def _names(answer: Json, server: str) -> Iterator[str]:
    entries = answer.get("resources", ())
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise NotKubernetes("not a list of resources", server)
    return (str(entry.get("name")) for entry in entries)


def _typed(item: Json, resource: Resource) -> Json:
    """The items of a list come without these two, and metadata alone comes as a type of its own."""
    return {"apiVersion": "", "kind": "", **item} | {"apiVersion": resource.api_version, "kind": resource.kind}


def _digits(text: str) -> int:
    return int("".join(character for character in text if character.isdigit()) or 0)
