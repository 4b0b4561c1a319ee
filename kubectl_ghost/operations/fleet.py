"""Reading the fleet: which nodes there are, which of them are simulated, and what pools they form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, RESOURCE_SLICES
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.adoption import is_adopted, template_of
from kubectl_ghost.domain.declaration_reading import decode
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import has_our_label, is_ours, is_simulated
from kubectl_ghost.domain.hardware import NodeHardware, PoolSettings
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.quantity import count

OURS = f"{keys.MANAGED_BY_LABEL}={keys.MANAGED_BY}"
"""Label selector of everything that this tool manages."""


def pool_selector(name: str) -> str:
    """Label selector of one pool's nodes and slices."""
    return f"{OURS},{keys.POOL_LABEL}={name}"


def template_selector(name: str) -> str:
    """Label selector of the nodes that were adopted with a pool's settings, and of their slices."""
    return f"{OURS},{keys.TEMPLATE_LABEL}={name}"


def hardware_of(node: Json) -> NodeHardware:
    """What a node of ours is declared to have.

    Raises:
        GhostError: naming the node, if the declaration is missing or cannot be read.
    """
    metadata = node["metadata"]
    annotations = metadata.get("annotations") or {}
    try:
        return decode(annotations.get(keys.HARDWARE_ANNOTATION, ""), metadata["name"])
    except GhostError as error:
        if not is_adopted(node):
            raise
        hint = f"Give all nodes of its kind back with: kubectl ghost delete-pool {template_of(node) or '--all'}"
        raise GhostError(error.message, hint) from error


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool: its nodes by index, lowest first; whole nodes or their metadata alone.

    The first node speaks for the pool. It is always written before the others and alone, so a command that was killed
    halfway has left its intent there. Its declaration is decoded when it is asked for: one that is damaged stands in
    nobody's way who does not need it.
    """

    name: str
    nodes: dict[int, Json]

    @property
    def first(self) -> Json:
        """The node of the lowest index."""
        return next(iter(self.nodes.values()))

    @property
    def settings(self) -> PoolSettings:
        """What holds for all of its nodes.

        Raises:
            GhostError: if the first node's declaration cannot be read.
        """
        return hardware_of(self.first).settings

    @property
    def size(self) -> int:
        """How many nodes it is declared to have, 0 while it is being deleted.

        Where the node that carries the number is missing, as many as the highest index needs.
        """
        declared = hardware_of(self.first).pool_size
        return max(self.nodes) + 1 if declared is None else declared

    @property
    def surplus(self) -> dict[str, Json]:
        """The nodes beyond its size, highest index first, by name: what a scale-down that was killed has left."""
        size = self.size
        beyond = [self.nodes[index] for index in sorted(self.nodes, reverse=True) if index >= size]
        return {node["metadata"]["name"]: node for node in beyond}

    @property
    def by_name(self) -> dict[str, Json]:
        """Its nodes by name."""
        return {node["metadata"]["name"]: node for node in self.nodes.values()}


def pools_of(nodes: Iterable[Json]) -> dict[str, Pool]:
    """The pools that these nodes (ours only) form, sorted by name; adopted ones are in none.

    Pool and index are read off a node's name, which nobody can change; the pool label is a copy that `sync` repairs.
    """
    members: dict[str, dict[int, Json]] = {}
    for node in nodes:
        pool, _, index = node["metadata"]["name"].rpartition("-")
        if is_ours(node) and not is_adopted(node) and index.isdecimal() and index == str(int(index)):
            members.setdefault(pool, {})[int(index)] = node
    return {name: Pool(name, dict(sorted(members[name].items()))) for name in sorted(members)}


def adopted_of(nodes: Iterable[Json]) -> dict[str, Json]:
    """Those of these nodes that were adopted, by name."""
    found = {node["metadata"]["name"]: node for node in nodes if is_ours(node) and is_adopted(node)}
    return dict(sorted(found.items()))


def groups_of(nodes: Iterable[Json]) -> dict[str, list[Json]]:
    """The nodes of every pool, by its name: its own by index, then those adopted with its settings.

    A pool that is gone may have adopted nodes still.
    """
    listed = list(nodes)
    groups = {name: list(pool.nodes.values()) for name, pool in pools_of(listed).items()}
    for node in adopted_of(listed).values():
        groups.setdefault(template_of(node), []).append(node)
    return dict(sorted(groups.items()))


def readable_settings(pools: Iterable[Pool], warnings: list[str]) -> list[PoolSettings]:
    """The settings of these pools, without those that cannot be read: a line in `warnings` tells of each."""
    found = []
    for pool in pools:
        try:
            found.append(pool.settings)
        except GhostError as error:
            warnings.append(error.message)
    return found


def unknown_pool(name: str, pools: Mapping[str, object]) -> GhostError:
    """The error for a pool that is not there, naming those that are."""
    present = ", ".join(pools) or "none"
    return GhostError(f'pool "{name}" not found', f"Pools in this cluster: {present}.")


@dataclass(frozen=True, slots=True)
class Survey:
    """Every node of the cluster, by what the tool may do with it; metadata only."""

    ours: list[Json]
    others_simulated: list[Json]
    real: list[Json]
    unmarked: list[Json]
    """Made by this tool, but somebody took kwok's annotation off: neither ours to write to nor anybody's hardware."""

    @property
    def names(self) -> dict[str, Json]:
        """Nodes that are not ours, by name."""
        return {node["metadata"]["name"]: node for node in [*self.others_simulated, *self.real, *self.unmarked]}


MOST_REAL_NODES = 10
"""More nodes than this that nobody simulates look like a cluster that people work on."""


def survey(reader: Reader) -> Survey:
    """One list of all nodes' metadata, sorted into ours, simulated by others, and real."""
    nodes = reader.list(NODES, metadata_only=True).items
    ours = [node for node in nodes if is_ours(node)]
    others = [node for node in nodes if is_simulated(node) and not is_ours(node)]
    rest = [node for node in nodes if not is_simulated(node)]
    unmarked = [node for node in rest if _was_ours(node)]
    return Survey(ours, others, [node for node in rest if not _was_ours(node)], unmarked)


def _was_ours(node: Json) -> bool:
    return has_our_label(node) and keys.HARDWARE_ANNOTATION in (node["metadata"].get("annotations") or {})


def unmarked_warnings(found: Survey) -> list[str]:
    """A line for each node that has lost kwok's annotation, with the way to give it back."""
    names = [node["metadata"]["name"] for node in found.unmarked]
    return [
        f'node "{name}" has lost the annotation {keys.KWOK_NODE_KEY} and is left alone; '
        f"give it back with: kubectl annotate node {name} {keys.KWOK_NODE_KEY}={keys.KWOK_NODE_VALUE}"
        for name in names
    ]


def refuse_terminating(nodes: Iterable[Json]) -> None:
    """Refuse to work on a node that is being deleted: whatever is written to it goes with it.

    Raises:
        GhostError: naming the node and what keeps it.
    """
    for node in nodes:
        metadata = node["metadata"]
        if metadata.get("deletionTimestamp"):
            keepers = ", ".join(metadata.get("finalizers") or ()) or "none"
            raise GhostError(
                f'node "{metadata["name"]}" is being deleted (finalizers: {keepers})', "Run again when it has gone."
            )


def refuse_mixed(reader: Reader, found: Survey) -> None:
    """Refuse a cluster with real GPUs, or with so many real nodes that it is somebody's.

    Raises:
        GhostError: naming the nodes and the flag that allows it.
    """
    if not found.real:
        return
    hint = "If this is the cluster you mean, pass --allow-mixed."
    if len(found.real) > MOST_REAL_NODES:
        raise GhostError(f"this cluster has {len(found.real)} nodes that are not simulated", hint)
    publishing = _nodes_with_devices(reader)
    for node in found.real:
        name = node["metadata"]["name"]
        labels = node["metadata"].get("labels") or {}
        if labels.get("nvidia.com/gpu.present") == "true" or name in publishing or _has_gpus(reader, name):
            raise GhostError(f'this cluster has real GPUs: node "{name}" is not simulated and offers them', hint)


def _nodes_with_devices(reader: Reader) -> set[str]:
    """Nodes for which NVIDIA's DRA driver publishes slices: they need neither a label nor any capacity."""
    if not reader.served(RESOURCE_SLICES):
        return set()
    slices = reader.list(RESOURCE_SLICES, field_selector=f"spec.driver={keys.GPU_DRIVER}").items
    return {item["spec"].get("nodeName", "") for item in slices}


def _has_gpus(reader: Reader, name: str) -> bool:
    node = reader.find(NODES, name)
    capacity = (node or {}).get("status", {}).get("capacity") or {}
    return any(key.startswith("nvidia.com/") and count(value) for key, value in capacity.items())
