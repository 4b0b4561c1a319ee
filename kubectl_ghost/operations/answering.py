"""Answering what is asked of a node, as the agents on a real one would: a MIG layout, a reboot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from kubectl_ghost.cluster.writes import Writer
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
from kubectl_ghost.operations.reconcile import update_node

REBOOT_SECONDS = 30.0
"""How long a node is away that somebody else has rebooted: this project's choice."""


def answer_nodes(
    writer: Writer, nodes: Iterable[Json], signs: RebootSigns, seconds: float = REBOOT_SECONDS
) -> Iterator[Change]:
    """Answer every request that stands on these nodes and has not been answered.

    Args:
        signs: what counts as a request to reboot.
        seconds: how long such a reboot takes.
    """
    for node in nodes:
        if not is_ours(node) or node["metadata"].get("deletionTimestamp"):
            continue
        hardware = hardware_of(node)
        wanted = mig_request(node, hardware)
        if wanted is not None:
            yield from _answer_mig(writer, node, hardware, wanted)
        elif (request := reboot_request(node, signs)) != hardware.rebooted_for and hardware.reboot is None:
            yield from _answer_reboot(writer, node, request, seconds)


def _answer_mig(writer: Writer, node: Json, hardware: NodeHardware, wanted: str) -> Iterator[Change]:
    """The layout, or `failed` where it is impossible, or where pods hold what would go."""
    answered = answer_mig_request(hardware, wanted)
    name = hardware.node_name
    if answered.gpus != hardware.gpus:
        pods = pods_on(writer, {name: node})
        held = find_holders({name: hardware}, claims_of(writer, pods), pods)
        if losing_holders({name: hardware}, {name: answered}, held):
            answered = fail_mig_request(hardware, wanted)
    failed = answered.mig_config == MigConfig(wanted, FAILED)

    def change(declared: NodeHardware) -> NodeHardware:
        if failed:
            return fail_mig_request(declared, wanted)
        return answer_mig_request(declared, wanted)

    yield from update_node(writer, node, change)


def _answer_reboot(writer: Writer, node: Json, request: str, seconds: float) -> Iterator[Change]:
    """Reboot a node that has been emptied for it; one that nobody asks to reboot any more forgets the last request."""
    if request and not is_drained(node, pods_on(writer, {node["metadata"]["name"]: node})):
        return
    moment = datetime.now(UTC)

    def change(declared: NodeHardware) -> NodeHardware:
        if declared.rebooted_for == request:
            return declared
        noted = replace(declared, rebooted_for=request)
        return begin_reboot(noted, moment, seconds) if request else noted

    yield from update_node(writer, node, change)
