"""One node and its slices: read, derive, write what differs. Every command that changes hardware ends here."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from kubectl_ghost.cluster.errors import AlreadyExists, Conflict, NotFound
from kubectl_ghost.cluster.resources import NODES, RESOURCE_SLICES
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.consequences import remembering_conditions, remembering_cordon
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import has_our_label, is_ours
from kubectl_ghost.domain.hardware import MigMode, NodeHardware
from kubectl_ghost.domain.keys import (
    HARDWARE_ANNOTATION,
    KWOK_NODE_KEY,
    KWOK_NODE_VALUE,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    Json,
)
from kubectl_ghost.domain.resettling import with_settings
from kubectl_ghost.domain.slice_rules import CURRENT, SliceRules, slice_rules
from kubectl_ghost.manifests.node import node as node_manifest
from kubectl_ghost.manifests.node import node_annotations
from kubectl_ghost.manifests.patches import node_patch, status_patch
from kubectl_ghost.manifests.resource_slice import resource_slices
from kubectl_ghost.manifests.slice_updates import SliceUpdate, slice_updates
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.clock import now
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.slices import read_slices
from kubectl_ghost.operations.waiting import may_become_ready

_ATTEMPTS = 16
_PAUSE_SECONDS = 0.02
HardwareChange = Callable[[NodeHardware], NodeHardware]
"""A pure change of the declaration; it is applied anew to what is read after a conflict."""


def bring_node(
    writer: Writer,
    live: Json | None,
    declare: Callable[[], NodeHardware],
    slices: Sequence[Json] | None = None,
    on_conflict: Callable[[], None] | None = None,
) -> list[Change]:
    """Create a node with its slices, or bring the one that is there to the same declaration; whichever it takes.

    Args:
        live: the node as last read, None if there was none.
        declare: the declaration; asked again after others have written, since `on_conflict` may have changed it.
        slices: the node's slices as last read; None to read them here.
        on_conflict: called when others have written to the node since it was read.

    Raises:
        GhostError: if a node of that name exists that is not ours.
        Conflict: if others keep changing it.
    """

    def change(old: NodeHardware) -> NodeHardware:
        wanted = declare()
        return replace(with_settings(old, wanted.settings), pool_size=wanted.pool_size)

    for _ in range(_ATTEMPTS):
        if live is None:
            try:
                return _create(writer, declare())
            except AlreadyExists:
                live, slices = writer.find(NODES, declare().node_name), None
                if live is None:
                    continue
                refuse_foreign(live)
                if on_conflict is not None:
                    on_conflict()
        try:
            return update_node(writer, live, change, slices, on_conflict)
        except NotFound:
            # Deleted since it was read: then it is made.
            live = None
    raise GhostError(
        f'node "{declare().node_name}" appears and disappears',
        "Something else deletes it: find out what, and run again.",
    )


def _create(writer: Writer, hardware: NodeHardware) -> list[Change]:
    created = writer.create(NODES, node_manifest(hardware))
    node = Change(NODES, Verb.CREATED, created)
    try:
        slices = _write_slices(writer, hardware, created, [])
        if any(change.verb is not Verb.CREATED for change in slices):
            _require_latest(writer, created)
        return [node, *slices]
    except Conflict:
        # A slice of a former node of that name is being changed or collected at this moment, or somebody else has
        # declared something on the new node already.
        return [node, *update_node(writer, writer.get(NODES, node.name), lambda same: same)[1:]]


def refuse_foreign(node: Json) -> None:
    """Refuse to take over a node of somebody else.

    Raises:
        GhostError: naming the node.
    """
    if not is_ours(node):
        name = node["metadata"]["name"]
        if has_our_label(node) and HARDWARE_ANNOTATION in (node["metadata"].get("annotations") or {}):
            raise GhostError(
                f'node "{name}" has lost the annotation {KWOK_NODE_KEY}, so nothing is written to it',
                f"Give it back with: kubectl annotate node {name} {KWOK_NODE_KEY}={KWOK_NODE_VALUE}",
            )
        raise GhostError(
            f'node "{name}" exists and is not managed by kubectl-ghost',
            "Choose another pool name, or delete that node first.",
        )


def update_node(
    writer: Writer,
    live: Json,
    change: HardwareChange,
    slices: Sequence[Json] | None = None,
    on_conflict: Callable[[], None] | None = None,
) -> list[Change]:
    """Bring a node of ours and its slices to its changed declaration.

    Args:
        live: the node as last read.
        change: the pure change; the identity for a plain repair.
        slices: the node's slices as last read; None to read them here.
        on_conflict: called before the change is done anew on what is read again.

    Raises:
        Conflict: if others keep changing the node.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _update_once(writer, live, change, slices)
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
            # Whoever else is at it would otherwise meet us again at the same place.
            time.sleep(random.uniform(0, _PAUSE_SECONDS * attempt))
            if on_conflict is not None:
                on_conflict()
            live = writer.get(NODES, live["metadata"]["name"])
            slices = None
    raise AssertionError("unreachable")


def _update_once(writer: Writer, live: Json, change: HardwareChange, slices: Sequence[Json] | None) -> list[Change]:
    old = hardware_of(live)
    new = remembering_conditions(change(old))
    new = remembering_cordon(old, new, unschedulable=bool(live.get("spec", {}).get("unschedulable")))
    before = live
    if _comes_back(live, new):
        # kwok answers the next write at once and writes back the resources that it saw: they have to be right by then.
        live = _written_status(writer, new, live)
    if patch := node_patch(old, new, live):
        live = writer.patch(NODES, live, patch)
    live = _written_status(writer, new, live)
    verb = Verb.UNCHANGED if live is before else Verb.CONFIGURED
    if slices is None:
        slices = read_slices(writer, node_name=live["metadata"]["name"])
    changes = _write_slices(writer, new, live, slices)
    if any(change.verb is not Verb.UNCHANGED for change in changes) and writer.dry_run is DryRun.NONE:
        _require_latest(writer, live)
    return [Change(NODES, verb, live), *changes]


def _comes_back(live: Json, new: NodeHardware) -> bool:
    """Whether a node that is declared down in its annotations is not to be so any more."""
    return not may_become_ready(live) and may_become_ready({"metadata": {"annotations": node_annotations(new)}})


def _written_status(writer: Writer, new: NodeHardware, live: Json) -> Json:
    """The node with its status as declared; the very same if it was so already."""
    patch = status_patch(new, live, now())
    return writer.patch(NODES, live, patch, subresource="status") if patch else live


def _require_latest(writer: Writer, live: Json) -> None:
    """Make sure that the slices were derived from the declaration that stands on the node now.

    A slice is another object than the node, so two commands at once could write them in the other order than their
    declarations. Whoever writes slices last looks at the node after that, so the last look sees the last declaration.

    Raises:
        Conflict: somebody has declared something else meanwhile: everything is derived anew.
    """
    name = live["metadata"]["name"]
    latest = writer.find(NODES, name)
    if latest is not None and _declared(latest) != _declared(live):
        raise Conflict(f'node "{name}" was declared anew while its slices were written')


def _declared(node: Json) -> str | None:
    text: str | None = (node["metadata"].get("annotations") or {}).get(HARDWARE_ANNOTATION)
    return text


def _write_slices(writer: Writer, hardware: NodeHardware, node: Json, live: Sequence[Json]) -> list[Change]:
    wanted = resource_slices(hardware, node, _rules(writer, hardware))
    updates, leftovers = slice_updates(wanted, live)
    changes = [_write_slice(writer, update, node) for update in updates]
    for leftover in leftovers:
        writer.delete(RESOURCE_SLICES, leftover, node=node)
        changes.append(Change(RESOURCE_SLICES, Verb.DELETED, leftover))
    return changes


def _rules(writer: Writer, hardware: NodeHardware) -> SliceRules:
    """The server's rules for slices, asked for only where they matter."""
    plain = hardware.settings.mig is MigMode.STATIC and not hardware.gpus and not hardware.faults
    return CURRENT if plain else slice_rules(writer.server_version())


def _write_slice(writer: Writer, update: SliceUpdate, node: Json) -> Change:
    if not update.differs and update.live is not None:
        return Change(RESOURCE_SLICES, Verb.UNCHANGED, update.live)
    body, live = update.body, update.live
    if live is None:
        try:
            return Change(RESOURCE_SLICES, Verb.CREATED, writer.create(RESOURCE_SLICES, body, node=node))
        except AlreadyExists:
            # Left behind by a node of the same name that has gone: it still names that node's uid as its owner.
            live = writer.find(RESOURCE_SLICES, body["metadata"]["name"])
            if live is None:
                return Change(RESOURCE_SLICES, Verb.CREATED, writer.create(RESOURCE_SLICES, body, node=node))
            _refuse_unmarked(live)
    try:
        return Change(RESOURCE_SLICES, Verb.CONFIGURED, writer.replace(RESOURCE_SLICES, live, body, node=node))
    except NotFound:
        # The garbage collector took the leftover between reading and writing.
        return Change(RESOURCE_SLICES, Verb.CREATED, writer.create(RESOURCE_SLICES, _new(body), node=node))


def _new(body: Json) -> Json:
    """The same slice without what the server gave the one that is gone."""
    kept = {key: body["metadata"][key] for key in ("name", "labels", "ownerReferences")}
    return {**body, "metadata": kept}


def _refuse_unmarked(live: Json) -> None:
    if not has_our_label(live):
        name = live["metadata"]["name"]
        raise GhostError(
            f'resourceslice "{name}" exists and does not carry the label {MANAGED_BY_LABEL}={MANAGED_BY}',
            f"If it is this tool's, delete it and run the command again: kubectl delete resourceslice {name}",
        )
