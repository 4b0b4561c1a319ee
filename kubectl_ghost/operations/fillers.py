"""Filler pods on the cluster: making those that declarations ask for, taking away those that none does.

The namespace is made first and goes last, so whatever a kill leaves behind is found through it. Others declare, make
and delete at the same time: before anything is written the declarations of the nodes in question are read again, after
what has been read of the fillers, and once more when it is written; whoever looks last sees what was declared last.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Generator, Iterator, Mapping

from kubectl_ghost.cluster.errors import Conflict
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NAMESPACES, PODS, PRIORITY_CLASSES, RESOURCE_CLAIMS, Resource
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import has_our_label
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import FILLER_NAMESPACE, Json
from kubectl_ghost.manifests import fillers as manifests
from kubectl_ghost.manifests.fillers import fillers
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.creating import SpaceLost, create_soon, settled
from kubectl_ghost.operations.filler_judging import Declared, Present, Work, awaited, by_name, judge, look
from kubectl_ghost.operations.fleet import OURS

_POLL_SECONDS = 0.2
_ATTEMPTS = 8


def reconcile_fillers(
    writer: Writer,
    hardware: Mapping[str, NodeHardware],
    nodes: Mapping[str, Json],
    *,
    whole: bool = True,
) -> Iterator[Change]:
    """Make the fillers that nodes' declarations ask for and delete those that they do not.

    In a cluster without fillers this is one small request. In a dry run the declarations given are what counts, since
    those that would have been written cannot be read.

    Args:
        hardware: declarations by node name.
        nodes: the nodes that there are, by name: fillers of one whose declaration cannot be read are left alone.
        whole: whether these are all nodes of ours; else fillers of other nodes are left alone.

    Raises:
        GhostError: if the namespace is somebody else's, or something keeps it from being made.
    """
    asked = {name: by_name(fillers(declared)) for name, declared in hardware.items()}
    yield from _until_settled(writer, Declared(asked, whole, set(nodes) - set(hardware)))


def delete_fillers(writer: Writer, nodes: Collection[str]) -> Iterator[Change]:
    """Delete all fillers of these nodes, which are going: their claims would outlive the pods."""
    yield from _until_settled(writer, Declared({name: {} for name in nodes}, going=frozenset(nodes)))


def _until_settled(writer: Writer, declared: Declared) -> Iterator[Change]:
    lost = False
    for _ in range(_ATTEMPTS):
        try:
            touched = yield from _reconcile(writer, declared)
        except SpaceLost:
            lost = True
            time.sleep(_POLL_SECONDS)
            continue
        if writer.dry_run is not DryRun.NONE or not declared.read_again(writer, touched):
            if lost and writer.find(NAMESPACES, FILLER_NAMESPACE) is None:
                # Classes made here when the namespace was already going: nothing would lead to them any more.
                yield from _delete(writer, PRIORITY_CLASSES, _classes(writer))
            return
    raise GhostError(
        f'what is made in namespace "{FILLER_NAMESPACE}" is deleted or declared anew again and again',
        "Something else is at it: find out what, and run again.",
    )


def _classes(reader: Reader) -> list[Json]:
    return reader.list(PRIORITY_CLASSES, label_selector=OURS).items


def _reconcile(writer: Writer, declared: Declared) -> Generator[Change, None, set[str]]:
    """Do it once; returns the nodes whose declarations it was done by."""
    needed = any(declared.fillers())
    space = writer.find(NAMESPACES, FILLER_NAMESPACE)
    if space is not None and not has_our_label(space):
        if needed:
            raise GhostError(f'namespace "{FILLER_NAMESPACE}" exists and is not managed by kubectl-ghost')
        return set()
    present = look(writer, settled(writer, FILLER_NAMESPACE, space, needed=needed))
    work = judge(present, declared)
    nodes = work.nodes
    if writer.dry_run is DryRun.NONE and nodes:
        declared.read_again(writer, nodes)
        work = judge(present, declared)
    yield from _delete(writer, PODS, work.misfits)
    yield from _delete(writer, RESOURCE_CLAIMS, work.strays)
    yield from _make(writer, present, work)
    if present.space is not None and not any(declared.fillers()):
        nodes |= yield from _end_space(writer, declared, present, work)
    return nodes


def _end_space(writer: Writer, declared: Declared, present: Present, work: Work) -> Generator[Change, None, set[str]]:
    """Delete the namespace if nobody needs it any more; returns the nodes that have come to need it meanwhile."""
    for kind, gone in ((present.pods, work.misfits), (present.claims, work.strays)):
        for item in gone:
            del kind[item["metadata"]["name"]]
    real = writer.dry_run is DryRun.NONE
    if not present.empty and real and (work.misfits or work.strays):
        # Who has deleted the others at the same time has seen these: the last one to look sees that none is left.
        present = look(writer, present.space)
    if present.space is None or not present.empty or (real and awaited(writer, declared.going)):
        return set()
    yield from _delete(writer, PRIORITY_CLASSES, _classes(writer))
    yield from _delete(writer, NAMESPACES, [present.space])
    return awaited(writer, declared.going) if real else set()


def _make(writer: Writer, present: Present, work: Work) -> Iterator[Change]:
    if not work.missing:
        return
    rehearsed = present.space is None
    if present.space is None:
        yield Change(NAMESPACES, Verb.CREATED, create_soon(writer, NAMESPACES, manifests.namespace()))
    for number in sorted({filler.priority for filler in work.missing}):
        if writer.find(PRIORITY_CLASSES, manifests.priority_class_name(number)) is None:
            rehearsed = True
            made = create_soon(writer, PRIORITY_CLASSES, manifests.priority_class(number))
            yield Change(PRIORITY_CLASSES, Verb.CREATED, made)
    # In a dry run the server knows neither a namespace nor a class that would have been made just before.
    untried = rehearsed and writer.dry_run is DryRun.SERVER

    def create(item: tuple[Resource, Json]) -> Change:
        resource, body = item
        return Change(resource, Verb.CREATED, body if untried else create_soon(writer, resource, body))

    yield from run_ordered(create, [(RESOURCE_CLAIMS, manifests.claim(filler)) for filler in work.unclaimed])
    yield from run_ordered(create, [(PODS, manifests.pod(filler)) for filler in work.missing])


def _delete(writer: Writer, resource: Resource, items: list[Json]) -> Iterator[Change]:
    def delete(item: Json) -> Change:
        # Another of that name has taken its place: the one that was meant has gone.
        with contextlib.suppress(Conflict):
            writer.delete(resource, item, grace_seconds=0 if resource is PODS else None)
        return Change(resource, Verb.DELETED, item)

    yield from run_ordered(delete, items)
