"""Answering what is asked of a node, as the agents on a real one would: a MIG layout, a reboot."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.expiry import next_end
from kubectl_ghost.domain.guard import is_ours
from kubectl_ghost.domain.hardware import MigConfig, NodeHardware
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.rebooting import begin_reboot
from kubectl_ghost.domain.requests import RebootSigns, is_drained, mig_request, reboot_request
from kubectl_ghost.domain.splitting import FAILED, answer_mig_request, fail_mig_request
from kubectl_ghost.operations.changes import Change
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.holdings import claims_of, find_holders
from kubectl_ghost.operations.mig_split import losing_holders
from kubectl_ghost.operations.pods import pods_on
from kubectl_ghost.operations.reconcile import HardwareChange, update_node

REBOOT_SECONDS = 30.0
"""How long a node is away that somebody else has rebooted: this project's choice."""
NOW, NEVER = 0.0, math.inf
_ATTEMPTS = 16
_PAUSE_SECONDS = 0.02


def answer_nodes(
    writer: Writer, nodes: Iterable[Json], signs: RebootSigns, seconds: float = REBOOT_SECONDS
) -> Iterator[Change]:
    """Answer every request that stands on these nodes and has not been answered, many nodes at a time.

    Args:
        signs: what counts as a request to reboot.
        seconds: how long such a reboot takes.
    """
    asking = [node for node in nodes if is_ours(node) and _asks(node, hardware_of(node), signs)]
    for changes in run_ordered(lambda node: answer_node(writer, node, signs, seconds), asking):
        yield from changes


def answer_node(writer: Writer, node: Json, signs: RebootSigns, seconds: float) -> list[Change]:
    """Answer what is asked of one node; a MIG layout before a reboot."""
    hardware = hardware_of(node)
    if not _asks(node, hardware, signs):
        return []
    if mig_request(node, hardware) is not None:
        return _answer_mig(writer, node)
    return _answer_reboot(writer, node, reboot_request(node, signs), seconds)


def due_at(node: Json, signs: RebootSigns) -> float:
    """When the next look at a node of ours is due that nobody writes to: NOW, NEVER or seconds since the epoch.

    Raises:
        GhostError: if its declaration cannot be read.
    """
    hardware = hardware_of(node)
    if _asks(node, hardware, signs):
        return NOW
    end = next_end(hardware)
    return datetime.fromisoformat(end).timestamp() if end else NEVER


def _asks(node: Json, hardware: NodeHardware, signs: RebootSigns) -> bool:
    """Whether anything is asked of a node that could be answered; pods may still keep it from rebooting."""
    if node["metadata"].get("deletionTimestamp"):
        return False
    if mig_request(node, hardware) is not None:
        return True
    request = reboot_request(node, signs)
    if request == hardware.rebooted_for or hardware.reboot is not None:
        return False
    return not request or is_drained(node, ())


class _Meanwhile(Exception):
    """Somebody else has written to the node since it was read."""


def _ask_again() -> None:
    raise _Meanwhile


def _answer_mig(writer: Writer, node: Json) -> list[Change]:
    """Make the layout that the label names; after a conflict it is read again, since it may name another one."""
    name = node["metadata"]["name"]
    for attempt in range(_ATTEMPTS):
        try:
            return update_node(writer, node, _mig_change(writer, node), on_conflict=_ask_again)
        except _Meanwhile:
            time.sleep(random.uniform(0, _PAUSE_SECONDS * attempt))
            node = writer.get(NODES, name)
    raise GhostError(f'node "{name}" is changed by others all the time', "Run the same command again.")


def _mig_change(writer: Writer, node: Json) -> HardwareChange:
    """The layout, or `failed` where it is impossible, or where pods hold what would go.

    Where the answer has been declared already, and no more than that, what follows from it is still to be written.
    """
    hardware = hardware_of(node)
    wanted = mig_request(node, hardware)
    if wanted is None:
        return lambda declared: declared
    answered = answer_mig_request(hardware, wanted)
    name = hardware.node_name
    if answered.gpus != hardware.gpus:
        pods = pods_on(writer, {name: node})
        held = find_holders({name: hardware}, claims_of(writer, pods), pods)
        if losing_holders({name: hardware}, {name: answered}, held):
            answered = fail_mig_request(hardware, wanted)
    if answered.mig_config == MigConfig(wanted, FAILED):
        return lambda declared: fail_mig_request(declared, wanted)
    return lambda declared: answer_mig_request(declared, wanted)


def _answer_reboot(writer: Writer, node: Json, request: str, seconds: float) -> list[Change]:
    """Reboot a node that has been emptied for it; one that nobody asks to reboot any more forgets the last request."""
    if request and not is_drained(node, pods_on(writer, {node["metadata"]["name"]: node})):
        return []
    moment = datetime.now(UTC)

    def change(declared: NodeHardware) -> NodeHardware:
        if declared.rebooted_for == request:
            return declared
        noted = replace(declared, rebooted_for=request)
        return begin_reboot(noted, moment, seconds) if request else noted

    return update_node(writer, node, change)
