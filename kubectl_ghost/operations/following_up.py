"""What follows from declarations beyond the nodes themselves: filler pods, and what a fault does to pods and tells.

The command that declares does this, too; `sync` does it for one that was killed before it got there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.breaking import struck
from kubectl_ghost.domain.consequences import node_reactions
from kubectl_ghost.domain.expiry import without_what_is_over
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.identity import gpu_name
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.changes import Change
from kubectl_ghost.operations.clock import now
from kubectl_ghost.operations.fault_effects import Hit, Seen, evict, look, losers
from kubectl_ghost.operations.fault_events import record_missing_events
from kubectl_ghost.operations.fillers import reconcile_fillers
from kubectl_ghost.operations.selecting import Chosen, whole


def follow_up(writer: Writer, nodes: Mapping[str, Json], readable: Mapping[str, NodeHardware]) -> Iterator[Change]:
    """Make and delete fillers, tell of faults that nobody has told of, and evict whom faults take their GPU from.

    Args:
        nodes: every node of ours, by name.
        readable: the declarations of those that can be read.
    """
    yield from reconcile_fillers(writer, readable, nodes)
    faulty = {name: hardware for name, hardware in readable.items() if hardware.all_faults()}
    yield from record_missing_events(writer, nodes, faulty)
    chosen = [whole(nodes[name]) for name in faulty]
    evicting = [item for item in chosen if any(_standing(item))]
    if not evicting:
        return
    seen = look(writer, evicting)
    concerned = [item.name for item in evicting if losers(seen, list(_standing(item)), {}, standing=True)]
    for changes in run_ordered(lambda name: _evict_on(writer, name, seen), concerned):
        yield from changes


def _evict_on(writer: Writer, name: str, seen: Seen) -> list[Change]:
    """Evict whoever holds what the faults of one node take, as it is declared now.

    Since all nodes were listed a fault may have been cleared and its GPU given to somebody else. So the node is read
    after its pods have been looked at: who held a GPU then, and whose fault stands now, did not get it healthy.
    """
    node = writer.find(NODES, name)
    if node is None:
        return []
    return [evict(writer, lost) for lost in losers(seen, list(_standing(whole(node))), {}, standing=True)]


def _standing(item: Chosen) -> Iterator[Hit]:
    """The declared faults of a node that evict and are not over."""
    hardware = without_what_is_over(item.hardware, now())
    for index, _, answer in node_reactions(hardware):
        if answer.evicts:
            yield Hit(item, index, answer, frozenset(map(gpu_name, struck(hardware, index, answer))))
