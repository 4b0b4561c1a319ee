"""What nodes are declared to have once a command has written: also in a dry run, which leaves nothing to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.expiry import without_what_is_over
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.clock import now
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.selecting import Chosen


def hardware_after(
    writer: Writer,
    chosen: Iterable[Chosen],
    nodes: Mapping[str, Json],
    change: Callable[[NodeHardware, Chosen], NodeHardware],
) -> dict[str, NodeHardware]:
    """The declarations of these nodes after `change_nodes` with the same change.

    A server that rehearses answers the last of a node's writes without those before it, so in a dry run the change is
    done on what was read.

    Args:
        nodes: the nodes as they were written, by name.
    """
    if writer.dry_run is DryRun.NONE:
        return {name: hardware_of(node) for name, node in nodes.items()}
    moment = now()
    return {item.name: change(without_what_is_over(item.hardware, moment), item) for item in chosen}
