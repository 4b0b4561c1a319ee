"""What is known of the cluster: simulated nodes with their pods and claims, kept small, with note of what changed.

Objects come in one by one from lists and watches, in any order between the collections. Of each only what attribution
and sensors need is kept, so that thousands of pods cost megabytes.
"""

from __future__ import annotations

import threading
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ghost_agent.options import Shard
from ghost_agent.small_objects import small_claim, small_node, small_pod
from kubectl_ghost.domain.guard import is_ours
from kubectl_ghost.domain.keys import GPU_DRIVER, HARDWARE_ANNOTATION, Json

NODES, PODS, CLAIMS = "nodes", "pods", "resourceclaims"
COLLECTIONS = (NODES, PODS, CLAIMS)


@dataclass(slots=True)
class NodeRecord:
    """One node with all that concerns it; `node` is None while only pods or claims of it have been seen."""

    node: Json | None = None
    pods: dict[str, Json] = field(default_factory=dict)
    claims: dict[str, Json] = field(default_factory=dict)


class Fleet:
    """The nodes of one shard. Safe to use from several threads."""

    def __init__(self, shard: Shard | None = None, *, pod_labels: bool = False) -> None:
        self._shard = shard or Shard()
        self._pod_labels = pod_labels
        self._lock = threading.RLock()
        self._records: dict[str, NodeRecord] = defaultdict(NodeRecord)
        self._pod_nodes: dict[str, str] = {}
        self._claim_nodes: dict[str, frozenset[str]] = {}
        self._changed: set[str] = set()

    def keep(self, collection: str, item: Json) -> Json:
        """What is kept of an object: a small copy of it, without apiVersion and kind."""
        if collection == NODES:
            return small_node(item)
        return small_pod(item, all_labels=self._pod_labels) if collection == PODS else small_claim(item)

    def replace(self, collection: str, items: Iterable[Json]) -> None:
        """Put a whole collection, of small objects, in the place of what was known of it."""
        with self._lock:
            gone = set(self._known(collection))
            for item in items:
                gone.discard(_key(collection, item))
                self.put(collection, item)
            for key in gone:
                self._remove(collection, key)

    def put(self, collection: str, item: Json) -> None:
        """An object, small, as it is now."""
        with self._lock:
            if collection == NODES:
                self._put_node(item)
            elif collection == PODS:
                self._put_pod(item)
            else:
                self._put_claim(item)

    def remove(self, collection: str, item: Json) -> None:
        """An object is gone."""
        with self._lock:
            self._remove(collection, _key(collection, item))

    def changed(self) -> list[str]:
        """The nodes about which anything has changed since they were taken."""
        with self._lock:
            return sorted(self._changed)

    def take_changed(self, names: Iterable[str] | None = None) -> list[tuple[str, NodeRecord | None]]:
        """The nodes about which anything has changed since they were taken: copies, None for those that are gone.

        Args:
            names: look at these alone; None for all.
        """
        with self._lock:
            if names is None:
                taken, self._changed = self._changed, set()
            else:
                taken = self._changed.intersection(names)
                self._changed -= taken
            return [(name, self._copy(name)) for name in sorted(taken)]

    def records(self) -> dict[str, NodeRecord]:
        """All nodes by name: copies."""
        with self._lock:
            found = {name: self._copy(name) for name in sorted(self._records)}
            return {name: record for name, record in found.items() if record is not None}

    def _copy(self, name: str) -> NodeRecord | None:
        record = self._records.get(name)
        if record is None or record.node is None:
            return None
        return NodeRecord(record.node, dict(record.pods), dict(record.claims))

    def _known(self, collection: str) -> Iterator[str]:
        if collection == NODES:
            return (name for name, record in self._records.items() if record.node is not None)
        return iter(list(self._pod_nodes if collection == PODS else self._claim_nodes))

    def _put_node(self, item: Json) -> None:
        name = item["metadata"]["name"]
        if not is_ours(item) or not self.serves(name):
            self._remove(NODES, name)
            return
        before = self._records[name].node
        self._records[name].node = item
        if before is None or _declared(before) != _declared(item):
            self._changed.add(name)

    def serves(self, node_name: str) -> bool:
        """Whether a node belongs to this shard: by a hash of its name, the same in every agent."""
        return zlib.crc32(node_name.encode()) % self._shard.total == self._shard.number - 1

    def _put_pod(self, item: Json) -> None:
        key, name = _key(PODS, item), item["spec"]["nodeName"]
        before = self._pod_nodes.get(key)
        if before is not None and before != name:
            self._remove(PODS, key)
        if name and self.serves(name):
            self._pod_nodes[key] = name
            self._records[name].pods[key] = item
            self._changed.add(name)

    def _put_claim(self, item: Json) -> None:
        key, names = _key(CLAIMS, item), frozenset(filter(self.serves, _pools(item)))
        for name in self._claim_nodes.get(key, frozenset()) - names:
            self._forget(name, self._records[name].claims, key)
        self._claim_nodes[key] = names
        for name in names:
            self._records[name].claims[key] = item
            self._changed.add(name)
        if not names:
            del self._claim_nodes[key]

    def _remove(self, collection: str, key: str) -> None:
        if collection == NODES:
            if key in self._records and self._records[key].node is not None:
                self._records[key].node = None
                self._changed.add(key)
                self._tidy(key)
        elif collection == PODS and (name := self._pod_nodes.pop(key, None)) is not None:
            self._forget(name, self._records[name].pods, key)
        elif collection == CLAIMS:
            for node_name in self._claim_nodes.pop(key, ()):
                self._forget(node_name, self._records[node_name].claims, key)

    def _forget(self, name: str, known: dict[str, Json], key: str) -> None:
        known.pop(key, None)
        self._changed.add(name)
        self._tidy(name)

    def _tidy(self, name: str) -> None:
        record = self._records[name]
        if record.node is None and not record.pods and not record.claims:
            del self._records[name]


def _key(collection: str, item: Json) -> str:
    metadata = item["metadata"]
    name: str = metadata["name"]
    return name if collection == NODES else f"{metadata['namespace']}/{name}"


def _declared(node: Json) -> tuple[str, str]:
    return node["metadata"]["uid"], node["metadata"]["annotations"].get(HARDWARE_ANNOTATION, "")


def _pools(claim: Json) -> Iterator[str]:
    allocation = claim["status"].get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        if result.get("driver") == GPU_DRIVER:
            yield result["pool"]
