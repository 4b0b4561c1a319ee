"""One look at the fleet: nodes, what they are declared to have, and who holds which GPU."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.gpu_status import is_usable
from kubectl_ghost.domain.guard import is_ours
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.holders import GpuKey, Holder
from kubectl_ghost.domain.identity import gpu_name, parent_gpu
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.fleet import OURS, groups_of, hardware_of
from kubectl_ghost.operations.holdings import find_holders, read_claims
from kubectl_ghost.operations.waiting import is_ready

VIEW_VERSION = f"{keys.DOMAIN}/v1alpha1"
"""apiVersion of the objects that exist only in this tool's output: Pool and GPU."""


@dataclass(frozen=True)
class Inventory:
    """One look at the fleet. Nodes, claims and pods are read one after the other, so it can be a moment apart."""

    nodes: dict[str, Json]
    ready: frozenset[str]
    hardware: dict[str, NodeHardware]
    groups: dict[str, list[Json]]
    """The nodes by the name of their pool, adopted ones after its own."""
    holders: dict[GpuKey, list[Holder]]
    pods: list[Json]
    problems: list[str]
    """A line for each node whose declaration cannot be read; it is left out of everything else."""

    @property
    def in_order(self) -> list[Json]:
        """The nodes, pool by pool."""
        return [node for group in self.groups.values() for node in group]

    @cached_property
    def held(self) -> frozenset[GpuKey]:
        """The GPUs that are held, whole or any part of them; those that fillers alone hold count as occupied."""
        return frozenset(
            (node_name, parent_gpu(device))
            for (node_name, device), found in self.holders.items()
            if any(holder.namespace != keys.FILLER_NAMESPACE for holder in found)
        )

    def held_on(self, node_name: str) -> int:
        """How many GPUs of a node are held; none of a node that is not in this look any more."""
        if node_name not in self.hardware:
            return 0
        return sum((node_name, gpu_name(index)) in self.held for index in range(self.hardware[node_name].settings.gpus))

    def free_on(self, node_name: str) -> int:
        """How many GPUs of a node a new pod could get: nobody holds any of them, and nothing is the matter."""
        if node_name not in self.hardware:
            return 0
        hardware = self.hardware[node_name]
        return sum(
            (node_name, gpu_name(index)) not in self.held and is_usable(hardware, index)
            for index in range(hardware.settings.gpus)
        )

    def shared(self) -> list[GpuKey]:
        """Devices that were handed out twice, by a claim and as capacity: the same one, or a part and the whole."""
        ways: dict[GpuKey, set[bool]] = defaultdict(set)
        for (node_name, device), found in self.holders.items():
            ways[(node_name, device)].update(bool(holder.claim) for holder in found)
        for key in [key for key in ways if "-mig-" in key[1]]:
            whole = (key[0], parent_gpu(key[1]))
            if whole in ways and len(ways[key] | ways[whole]) > 1:
                ways[whole] |= ways[key]
        return sorted(key for key, found in ways.items() if len(found) > 1)


def read_inventory(
    reader: Reader,
    *,
    selector: str | None = None,
    field_selector: str | None = None,
    chunk: int = 500,
    whole: bool = True,
    readiness: bool = True,
) -> Inventory:
    """Read the fleet.

    Args:
        selector: further label selector on the nodes.
        field_selector: field selector on the nodes.
        whole: read the nodes whole; else their metadata, and from the server's own table which of them are Ready.
        readiness: False where nobody asks which nodes are Ready.
    """
    labels = f"{OURS},{selector}" if selector else OURS
    found = reader.list(
        NODES, label_selector=labels, field_selector=field_selector, chunk=chunk, metadata_only=not whole
    ).items
    nodes, hardware, problems = {}, {}, []
    for item in filter(is_ours, found):
        name = item["metadata"]["name"]
        try:
            hardware[name] = hardware_of(item)
        except GhostError as error:
            problems.append(error.message)
        else:
            nodes[name] = item
    if not nodes:
        return Inventory({}, frozenset(), {}, {}, {}, [], problems)
    ready: frozenset[str] = frozenset()
    if whole:
        ready = frozenset(name for name, node in nodes.items() if is_ready(node))
    elif readiness:
        rows = reader.printed(NODES, label_selector=labels, field_selector=field_selector)
        ready = frozenset(row["Name"] for row in rows if row["Status"].split(",")[0] == "Ready")
    pods = reader.list(PODS, chunk=chunk).items
    bound = [pod for pod in pods if pod.get("spec", {}).get("nodeName")]
    held = find_holders(hardware, read_claims(reader), bound)
    return Inventory(nodes, ready, hardware, groups_of(nodes.values()), held, pods, problems)
