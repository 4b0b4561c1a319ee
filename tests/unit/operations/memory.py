"""The storage of an API server in memory, under the real `Writer` with the real guard.

It keeps objects, versions and preconditions, and decides nothing that a scheduler or a controller decides: nothing is
bound, collected or made Ready unless a test does it. Its requests can be recorded, and a test may come in between.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from kubectl_ghost.cluster import resources
from kubectl_ghost.cluster.errors import AlreadyExists, Blocked, Conflict, NotFound
from kubectl_ghost.cluster.resources import Resource
from kubectl_ghost.cluster.writes import Writer, merged
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.drain import DAEMON_SETS
from kubectl_ghost.operations.permission import permit

KNOWN = (
    resources.NODES,
    resources.PODS,
    resources.RESOURCE_SLICES,
    resources.RESOURCE_CLAIMS,
    resources.DEVICE_CLASSES,
    DAEMON_SETS,
    resources.EVENTS,
    resources.SERVICE_ACCOUNTS,
    resources.CONFIG_MAPS,
    resources.NAMESPACES,
    resources.PRIORITY_CLASSES,
    resources.CLUSTER_ROLES,
    resources.CLUSTER_ROLE_BINDINGS,
)
VERBS = {"POST": "create", "PATCH": "patch", "PUT": "replace", "DELETE": "delete"}
Key = tuple[str, str, str]
"""Kind, namespace and name."""


class Killed(BaseException):
    """The process ends here: no handler of the product may catch it, and nothing is sent after it."""


@dataclass(frozen=True)
class Sent:
    """One request, as far as tests ask: the name is empty for a collection."""

    verb: str
    resource: Resource
    name: str
    query: Json

    def __str__(self) -> str:
        return f"{self.verb} {self.resource.plural}/{self.name}"


class Store:
    """Every object of a cluster, and every change in order.

    Args:
        dra: whether resource.k8s.io/v1 is served.
        extended: whether the feature gate DRAExtendedResource is on; a server without it drops the field.

    Attributes:
        budgets: by a pod's name, the PodDisruptionBudget that does not let it be evicted.
    """

    def __init__(self, *, dra: bool = True, extended: bool = True, taints: bool = True, counters: bool = True) -> None:
        self.dra, self.extended, self.taints, self.counters = dra, extended, taints, counters
        self.objects: dict[Key, Json] = {}
        self.changes: list[tuple[int, str, Json]] = []
        self.budgets: dict[str, str] = {}
        self.lock = threading.RLock()
        self.version = 0

    def copy(self) -> Store:
        """The same cluster once more. What is stored is never changed in place, so the objects are shared."""
        twin = Store(dra=self.dra, extended=self.extended, taints=self.taints, counters=self.counters)
        twin.objects, twin.changes, twin.version = dict(self.objects), list(self.changes), self.version
        twin.budgets = dict(self.budgets)
        return twin

    def key(self, resource: Resource, name: str, namespace: str | None = None) -> Key:
        """The key of an object; pods are in `default` unless said otherwise."""
        return resource.kind, (namespace or "default") if resource.namespaced else "", name

    def stripped(self, item: Json) -> Json:
        """What a server whose feature gates are off leaves of a slice."""
        spec = item.get("spec", {})
        if not self.counters and "sharedCounters" in spec:
            spec = {key: value for key, value in spec.items() if key != "sharedCounters"}
        if not self.taints and "devices" in spec:
            bare = [{key: value for key, value in found.items() if key != "taints"} for found in spec["devices"]]
            spec = {**spec, "devices": bare}
        return {**item, "spec": spec} if spec else item

    def put(self, resource: Resource, item: Json, *, kind: str = "ADDED") -> Json:
        """Store an object as it is, in a new version; what the server fills in is filled in."""
        with self.lock:
            self.version += 1
            metadata = {
                "uid": f"uid-{self.version}",
                "creationTimestamp": f"{datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.version):%FT%TZ}",
                **item["metadata"],
                "resourceVersion": str(self.version),
            }
            if resource.namespaced:
                metadata.setdefault("namespace", "default")
            made = {**item, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
            if resource is resources.DEVICE_CLASSES and not self.extended:
                made["spec"] = {key: value for key, value in made["spec"].items() if key != "extendedResourceName"}
            self.objects[self.key(resource, metadata["name"], metadata.get("namespace"))] = made
            self.changes.append((self.version, kind, made))
            return made

    def edit(self, resource: Resource, name: str, change: Callable[[Json], Any], namespace: str | None = None) -> None:
        """What somebody else writes: changes the object in place."""
        with self.lock:
            item = copy.deepcopy(self.objects[self.key(resource, name, namespace)])
            change(item)
            self.put(resource, item, kind="MODIFIED")

    def remove(self, resource: Resource, name: str, namespace: str | None = None) -> None:
        """Delete an object; with finalizers it is marked for deletion and stays."""
        with self.lock:
            key = self.key(resource, name, namespace)
            if self.objects[key]["metadata"].get("finalizers"):
                self.edit(resource, name, lambda item: item["metadata"].update(deletionTimestamp="now"), namespace)
                return
            self.version += 1
            self.changes.append((self.version, "DELETED", self.objects.pop(key)))

    def all(self, resource: Resource) -> list[Json]:
        """The objects of a type, sorted as etcd sorts them."""
        with self.lock:
            return [item for key, item in sorted(self.objects.items()) if key[0] == resource.kind]

    def names(self, resource: Resource) -> list[str]:
        """Their names."""
        return [item["metadata"]["name"] for item in self.all(resource)]

    def one(self, resource: Resource, name: str) -> Json:
        """One object, to look at."""
        return self.objects[self.key(resource, name)]


class Memory(Writer):
    """One user's connection to a store.

    Attributes:
        before: called with the number of a write, from 1, and the write, just before the store looks at it.
        before_any: the same for reads and writes counted together.
    """

    def __init__(self, store: Store | None = None, *, dry_run: DryRun = DryRun.NONE) -> None:
        transport: Any = SimpleNamespace(target=SimpleNamespace(server="https://memory"))
        # As commands write that print names: whoever looks at more of what is created has to ask for it.
        super().__init__(transport, permit, dry_run, echo=False)
        self.store = store or Store()
        self.writes: list[Sent] = []
        self.sent: list[Sent] = []
        self.before: Callable[[int, Sent], Any] = lambda number, sent: None
        self.before_any: Callable[[int, Sent], Any] = lambda number, sent: None
        self.idle: Callable[[float], Any] = lambda timeout: None

    def kill_before(self, number: int) -> Memory:
        """Die instead of the n-th write, and of all that would follow it."""

        def die(current: int, _: Sent) -> None:
            if current >= number:
                raise Killed

        self.before = die
        return self

    def served(self, resource: Resource) -> bool:
        return not resource.group or self.store.dra

    def server_version(self) -> tuple[int, int]:
        return (1, 36) if self.store.dra and self.store.extended else (1, 34 if self.store.dra else 33)

    def printed(
        self, resource: Resource, *, label_selector: str | None = None, field_selector: str | None = None
    ) -> Iterator[dict[str, str]]:
        """The server's table of nodes, as far as it is read."""
        for item in self.list(resource, label_selector=label_selector, field_selector=field_selector).items:
            conditions = {entry["type"]: entry["status"] for entry in item["status"].get("conditions") or ()}
            status = {"True": "Ready", None: "Unknown"}.get(conditions.get("Ready"), "NotReady")
            closed = ",SchedulingDisabled" if item["spec"].get("unschedulable") else ""
            yield {"Name": item["metadata"]["name"], "Status": f"{status}{closed}"}

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
        """What has changed since, then what changes while `idle` is called, again as long as that returns True."""
        seen, going_on = int(resource_version), True
        while True:
            for version, kind, item in list(self.store.changes):
                if version > seen and item["kind"] == resource.kind and _matches(item, label_selector, field_selector):
                    seen = version
                    yield kind, copy.deepcopy(item)
            if not going_on:
                return
            going_on = self.idle(timeout or 0) is True

    def _ask(self, request: Any) -> bytes:
        resource, namespace, name, subresource = _parsed(request.path)
        body = json.loads(json.dumps(request.body)) if request.body is not None else {}
        verb = "evict" if subresource == "eviction" else VERBS.get(request.method, "get" if name else "list")
        sent = Sent(verb, resource, name or body.get("metadata", {}).get("name", ""), dict(request.query))
        self.sent.append(sent)
        self.before_any(len(self.sent), sent)
        if request.method != "GET":
            self.writes.append(sent)
            self.before(len(self.writes), sent)
        with self.store.lock:
            if resource.group == "resource.k8s.io" and not self.store.dra:
                raise NotFound("the server could not find the requested resource", status=404)
            if verb in ("get", "list"):
                answer = self._read(resource, namespace, name, request)
            elif verb == "create":
                dry = "dryRun" in request.query
                answer = self.store.stripped(body) if dry else self._create(resource, namespace, body)
            elif verb == "evict":
                answer = self._evict(namespace, name, body["deleteOptions"])
            elif verb == "delete":
                answer = self._delete(resource, namespace, name, request.query, body)
            else:
                answer = self._update(verb, self._live(resource, namespace, name), subresource, resource, body)
            if verb in ("create", "replace") and "PartialObjectMetadata" in request.accept:
                answer = {"metadata": answer["metadata"]}
            return json.dumps(answer).encode()

    def _read(self, resource: Resource, namespace: str | None, name: str, request: Any) -> Json:
        if name:
            return self._live(resource, namespace, name)
        found = [
            item
            for item in self.store.all(resource)
            if _matches(item, request.query.get("labelSelector"), request.query.get("fieldSelector"))
            and namespace in (None, item["metadata"].get("namespace"))
        ]
        if "PartialObjectMetadataList" in request.accept:
            found = [{"metadata": item["metadata"]} for item in found]
        return {"items": found, "metadata": {"resourceVersion": str(self.store.version)}}

    def _live(self, resource: Resource, namespace: str | None, name: str) -> Json:
        live = self.store.objects.get(self.store.key(resource, name, namespace))
        if live is None:
            raise NotFound(f'{resource.plural} "{name}" not found', status=404)
        return live

    def _create(self, resource: Resource, namespace: str | None, body: Json) -> Json:
        name = body["metadata"]["name"]
        if self.store.key(resource, name, namespace) in self.store.objects:
            raise AlreadyExists(f'{resource.plural} "{name}" already exists', status=409)
        return self.store.put(resource, body)

    def _update(self, verb: str, live: Json, subresource: str | None, resource: Resource, body: Json) -> Json:
        now, asked = live["metadata"], body["metadata"]
        if (now["uid"], now["resourceVersion"]) != (asked["uid"], asked["resourceVersion"]):
            raise Conflict(f'{resource.plural} "{now["name"]}": the object has been modified', status=409)
        after = merged(live, body) if verb == "patch" else body
        if subresource == "status":
            after = {**live, "status": after.get("status", {})}
        elif "status" in live:
            after = {**after, "status": live["status"]}
        return live if after == live else self.store.put(resource, after, kind="MODIFIED")

    def _evict(self, namespace: str | None, name: str, options: Json) -> Json:
        if (budget := self.store.budgets.get(name)) is not None:
            said = f"The disruption budget {budget} needs 1 healthy pods and has 1 currently"
            causes = [{"reason": "DisruptionBudget", "message": said}]
            raise Blocked("Cannot evict pod", status=429, details={"causes": causes})
        if "dryRun" in options:
            return self._live(resources.PODS, namespace, name)
        return self._delete(resources.PODS, namespace, name, {}, options)

    def _delete(self, resource: Resource, namespace: str | None, name: str, query: Any, options: Json) -> Json:
        if name:
            if self._live(resource, namespace, name)["metadata"]["uid"] != options["preconditions"]["uid"]:
                raise Conflict(f'{resource.plural} "{name}": another uid', status=409)
            self.store.remove(resource, name, namespace)
            return {}
        for item in self.store.all(resource):
            if _matches(item, query["labelSelector"], query.get("fieldSelector")):
                self.store.remove(resource, item["metadata"]["name"], item["metadata"].get("namespace"))
        return {}


def _parsed(path: str) -> tuple[Resource, str | None, str, str | None]:
    for resource in KNOWN:
        rest = path.removeprefix(f"{resource.root}/").split("/")
        # A namespace is an object, and what stands before the objects in it.
        namespace = rest[1] if resource.namespaced and rest[0] == "namespaces" and len(rest) > 2 else None
        rest = rest[2:] if namespace else rest
        if path.startswith(f"{resource.root}/") and rest[0] == resource.plural:
            return resource, namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else None
    raise AssertionError(path)


def _matches(item: Json, labels: str | None, fields: str | None) -> bool:
    def field(path: str) -> str:
        value: Any = item
        for part in path.split("."):
            value = value.get(part) or {}
        return value or ""

    def fits(term: str, value: Callable[[str], str | None]) -> bool:
        key, sign, wanted = term.partition("=")
        return value(key[:-1]) != wanted if key.endswith("!") and sign else value(key) == wanted

    present = item["metadata"].get("labels") or {}
    return all(fits(term, present.get) for term in filter(None, (labels or "").split(","))) and all(
        fits(term, field) for term in filter(None, (fields or "").split(","))
    )
