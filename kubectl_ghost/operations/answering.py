"""Answering what is asked of a node, as the agents on a real one would: a MIG layout, a reboot."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.expiry import next_end
from kubectl_ghost.domain.guard import is_ours
from kubectl_ghost.domain.hardware import MigConfig, NodeHardware
from kubectl_ghost.domain.keys import MIG_CONFIG_LABEL, Json
from kubectl_ghost.domain.rebooting import begin_reboot
from kubectl_ghost.domain.requests import PENDING, RebootSigns, is_drained, mig_request, reboot_request
from kubectl_ghost.domain.splitting import answer_mig_request, fail_mig_request, mig_problem
from kubectl_ghost.domain.wording import counted
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.clock import moment
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
Tell = Callable[[str], None]
"""Told why something that was asked for cannot be had."""


def answer_nodes(
    writer: Writer,
    nodes: Iterable[Json],
    signs: RebootSigns,
    seconds: float = REBOOT_SECONDS,
    tell: Tell = lambda _: None,
) -> Iterator[Change]:
    """Answer every request that stands on these nodes and has not been answered, many nodes at a time.

    Args:
        signs: what counts as a request to reboot.
        seconds: how long such a reboot takes.
    """
    asking = [node for node in nodes if is_ours(node) and _asks(node, hardware_of(node), signs)]
    for changes in run_ordered(lambda node: answer_node(writer, node, signs, seconds, tell), asking):
        yield from changes


def answer_node(writer: Writer, node: Json, signs: RebootSigns, seconds: float, tell: Tell) -> list[Change]:
    """Answer what is asked of one node; a MIG layout before a reboot."""
    hardware = hardware_of(node)
    if not _asks(node, hardware, signs):
        return []
    if mig_request(node, hardware) is not None:
        return _answer_mig(writer, node, tell)
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


def _answer_mig(writer: Writer, node: Json, tell: Tell) -> list[Change]:
    """Make the layout that the label names; after a conflict it is read again, since it may name another one.

    As the MIG manager does, the state is `pending` first: what it said of the layout before is no answer.
    """
    name = node["metadata"]["name"]
    for attempt in range(_ATTEMPTS):
        try:
            begun = update_node(writer, node, _pending(node), on_conflict=_ask_again)
            node = begun[0].body
            return [*begun, *update_node(writer, node, _mig_change(writer, node, tell), on_conflict=_ask_again)]
        except _Meanwhile:
            time.sleep(random.uniform(0, _PAUSE_SECONDS * attempt))
            node = writer.get(NODES, name)
    raise GhostError(f'node "{name}" is changed by others all the time', "Run the same command again.")


def _pending(node: Json) -> HardwareChange:
    wanted = mig_request(node, hardware_of(node))
    if wanted is None:
        return lambda declared: declared
    return lambda declared: replace(declared, mig_config=MigConfig(wanted, PENDING))


def _mig_change(writer: Writer, node: Json, tell: Tell) -> HardwareChange:
    """The layout, or `failed` where it is impossible, or where pods hold what would go.

    Where the answer has been declared already, and no more than that, what follows from it is still to be written.
    """
    hardware = hardware_of(node)
    wanted = mig_request(node, hardware)
    if wanted is None:
        return lambda declared: declared
    problem = mig_problem(hardware, wanted) or _in_the_way(writer, node, answer_mig_request(hardware, wanted))
    if problem:
        tell(f'node "{hardware.node_name}": {MIG_CONFIG_LABEL}={wanted} failed: {problem}')
        return lambda declared: fail_mig_request(declared, wanted)
    return lambda declared: answer_mig_request(declared, wanted)


def _in_the_way(writer: Writer, node: Json, answered: NodeHardware) -> str:
    """What holds GPUs that would be split anew; "" if nothing does."""
    hardware = hardware_of(node)
    if answered.gpus == hardware.gpus:
        return ""
    name = hardware.node_name
    pods = pods_on(writer, {name: node})
    held = find_holders({name: hardware}, claims_of(writer, pods), pods)
    losing = sorted(map(str, losing_holders({name: hardware}, {name: answered}, held)))
    some = ", ".join(losing[:3]) + (" ..." if len(losing) > 3 else "")
    return f"{counted(len(losing), 'pod')} in the way: {some}" if losing else ""


def _answer_reboot(writer: Writer, node: Json, request: str, seconds: float) -> list[Change]:
    """Reboot a node that has been emptied for it; one that nobody asks to reboot any more forgets the last request."""
    if request and not is_drained(node, pods_on(writer, {node["metadata"]["name"]: node})):
        return []
    began_at = moment()

    def change(declared: NodeHardware) -> NodeHardware:
        if declared.rebooted_for == request:
            return declared
        noted = replace(declared, rebooted_for=request)
        return begin_reboot(noted, began_at, seconds) if request else noted

    first, *others = update_node(writer, node, change)
    began = request and hardware_of(first.body).reboot is not None
    return [replace(first, verb=Verb.REBOOTING) if began else first, *others]
