"""What follows from declarations beyond the nodes themselves: filler pods, and the pods that a fault has to evict.

The command that declares does this, too; `sync` does it for one that was killed before it got there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.breaking import struck
from kubectl_ghost.domain.consequences import node_reactions
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.identity import gpu_name
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.changes import Change
from kubectl_ghost.operations.fault_effects import Hit, evict_holders, look
from kubectl_ghost.operations.fillers import reconcile_fillers
from kubectl_ghost.operations.selecting import Chosen, whole


def follow_up(writer: Writer, nodes: Mapping[str, Json], readable: Mapping[str, NodeHardware]) -> Iterator[Change]:
    """Make and delete fillers, and evict whoever still holds what a fault takes from them.

    Args:
        nodes: every node of ours, by name.
        readable: the declarations of those that can be read.
    """
    yield from reconcile_fillers(writer, readable, nodes)
    chosen = [whole(nodes[name]) for name, hardware in readable.items() if hardware.all_faults()]
    hits = [hit for item in chosen for hit in _standing(item)]
    if hits:
        yield from evict_holders(writer, look(writer, chosen), hits, {})


def _standing(item: Chosen) -> Iterator[Hit]:
    """The declared faults of a node that evict."""
    for index, _, answer in node_reactions(item.hardware):
        if answer.evicts:
            yield Hit(item, index, answer, frozenset(map(gpu_name, struck(item.hardware, index, answer))))
