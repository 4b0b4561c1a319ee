"""A reboot: declared on the node, which is NotReady meanwhile, and finished by whoever looks when it is over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.rebooting import begin_reboot, finish_reboot, reboot_due, seconds_left
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.clock import moment
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.reconcile import update_node

_STEP_SECONDS = 1.0

Progress = Callable[[int, int], None]
"""Called with the seconds that have passed and those that all reboots take from when they are waited for."""


def start_reboot(writer: Writer, node: Json, seconds: float) -> Iterator[Change]:
    """Declare that a node is rebooting; one that is already goes on with the reboot that it is in."""
    began = False

    def begin(old: NodeHardware) -> NodeHardware:
        nonlocal began
        began = old.reboot is None
        return begin_reboot(old, moment(), seconds)

    live = writer.get(NODES, node["metadata"]["name"])
    changed, *slices = update_node(writer, live, begin)
    yield Change(NODES, Verb.REBOOTING if began else Verb.ALREADY_REBOOTING, changed.body)
    yield from _real(slices)


def finish_reboots(writer: Writer, names: Sequence[str], progress: Progress) -> Iterator[Change]:
    """Wait until the reboots of these nodes are over, and bring each node back when its own is.

    Nodes are Ready a moment later. A reboot that another command has finished meanwhile is as good.
    """
    pending = {name: hardware_of(writer.get(NODES, name)) for name in names}
    total = _longest(pending.values(), moment())
    while pending:
        now = moment()
        progress(total - _longest(pending.values(), now), total)
        for name in [name for name, hardware in pending.items() if seconds_left(hardware, now) == 0]:
            node, *slices = update_node(writer, writer.get(NODES, name), partial(_finished, now))
            pending[name] = hardware_of(node.body)
            if pending[name].reboot is None:
                del pending[name]
                yield Change(NODES, Verb.REBOOTED, node.body)
                yield from _real(slices)
        if pending:
            nearest = min(seconds_left(hardware, moment()) for hardware in pending.values())
            time.sleep(min(_STEP_SECONDS, nearest))


def _finished(now: datetime, hardware: NodeHardware) -> NodeHardware:
    return finish_reboot(hardware) if reboot_due(hardware, now) else hardware


def _longest(hardware: Iterable[NodeHardware], now: datetime) -> int:
    return math.ceil(max((seconds_left(one, now) for one in hardware), default=0.0))


def _real(changes: Sequence[Change]) -> list[Change]:
    return [change for change in changes if change.verb is not Verb.UNCHANGED]
