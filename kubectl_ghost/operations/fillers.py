"""Filler pods on the cluster: making those that declarations ask for, taking away those that none does.

The namespace is made first and goes last, so whatever a kill leaves behind is found through it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from kubectl_ghost.cluster.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NAMESPACES, PODS, PRIORITY_CLASSES, RESOURCE_CLAIMS, Resource
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import has_our_label
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.holders import is_finished
from kubectl_ghost.domain.keys import FILLER_NAMESPACE, GPUS_ANNOTATION, Json
from kubectl_ghost.manifests import fillers as manifests
from kubectl_ghost.manifests.fillers import Filler, fillers, place_of
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.fleet import OURS

_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.2
_TERMINATING = "NamespaceTerminating"
_NO_ACCOUNT = "error looking up service account"
"""What the server says of a pod in a namespace so new that its service account has not been made yet."""
_ATTEMPTS = 8


@dataclass(slots=True)
class _Present:
    """What there is of ours in the namespace; `space` is None where there is none, or it is on its way out."""

    space: Json | None = None
    pods: dict[str, Json] = field(default_factory=dict)
    claims: dict[str, Json] = field(default_factory=dict)
    strangers: bool = False


def reconcile_fillers(
    writer: Writer,
    hardware: Mapping[str, NodeHardware],
    nodes: Mapping[str, Json],
    *,
    whole: bool = True,
) -> Iterator[Change]:
    """Make the fillers that these declarations ask for and delete those that they do not.

    In a cluster without fillers this is one small request.

    Args:
        hardware: declarations by node name.
        nodes: the nodes that there are, by name: fillers of one whose declaration cannot be read are left alone.
        whole: whether these are all nodes of ours; else fillers of other nodes are left alone.

    Raises:
        GhostError: if the namespace is somebody else's, or something keeps it from being made.
    """
    wanted = {filler.name: filler for declared in hardware.values() for filler in fillers(declared)}

    def ours_to_judge(name: str) -> bool:
        node = place_of(name)[0]
        return node in hardware or (whole and node not in nodes)

    yield from _until_settled(writer, wanted, ours_to_judge)


def delete_fillers(writer: Writer, nodes: Collection[str]) -> Iterator[Change]:
    """Delete all fillers of these nodes, which are going: their claims would outlive the pods."""
    yield from _until_settled(writer, {}, lambda name: place_of(name)[0] in nodes)


def _until_settled(
    writer: Writer, wanted: Mapping[str, Filler], ours_to_judge: Callable[[str], bool]
) -> Iterator[Change]:
    for _ in range(_ATTEMPTS):
        try:
            yield from _reconcile(writer, wanted, ours_to_judge)
            return
        except _SpaceLost:
            time.sleep(_POLL_SECONDS)
    raise GhostError(
        f'namespace "{FILLER_NAMESPACE}" is deleted again and again',
        "Something else deletes it: find out what, and run again.",
    )


class _SpaceLost(Exception):
    """The namespace went while something was made in it, with whatever had been made there before."""


def _reconcile(writer: Writer, wanted: Mapping[str, Filler], ours_to_judge: Callable[[str], bool]) -> Iterator[Change]:
    space = writer.find(NAMESPACES, FILLER_NAMESPACE)
    if space is not None and not has_our_label(space):
        if wanted:
            raise GhostError(f'namespace "{FILLER_NAMESPACE}" exists and is not managed by kubectl-ghost')
        return
    present = _read(writer, _settled(writer, space, needed=bool(wanted)))
    misfits = [pod for name, pod in present.pods.items() if ours_to_judge(name) and not _fits(pod, wanted)]
    strays = [claim for name, claim in present.claims.items() if ours_to_judge(name) and not _claims(claim, wanted)]
    yield from _delete(writer, PODS, misfits)
    yield from _delete(writer, RESOURCE_CLAIMS, strays)
    for kind, gone in ((present.pods, misfits), (present.claims, strays)):
        for item in gone:
            del kind[item["metadata"]["name"]]
    if wanted:
        missing = [filler for name, filler in wanted.items() if name not in present.pods]
        yield from _make(writer, present, missing)
    elif present.space and not present.pods and not present.claims and not present.strangers:
        yield from _delete(writer, PRIORITY_CLASSES, writer.list(PRIORITY_CLASSES, label_selector=OURS).items)
        yield from _delete(writer, NAMESPACES, [present.space])


def _settled(writer: Writer, space: Json | None, *, needed: bool) -> Json | None:
    """The namespace, once one that is going has gone if another is needed."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while space is not None and space["metadata"].get("deletionTimestamp"):
        if not needed or writer.dry_run is not DryRun.NONE:
            return None
        if time.monotonic() >= end:
            raise GhostError(
                f'namespace "{FILLER_NAMESPACE}" is being deleted and does not go',
                f"See what keeps it: kubectl get namespace {FILLER_NAMESPACE} -o yaml",
            )
        time.sleep(_POLL_SECONDS)
        # Gone, or made anew by somebody who has waited as well.
        space = writer.find(NAMESPACES, FILLER_NAMESPACE)
    return space


def _read(reader: Reader, space: Json | None) -> _Present:
    if space is None:
        return _Present()
    pods = reader.list(PODS, namespace=FILLER_NAMESPACE).items
    served = reader.served(RESOURCE_CLAIMS)
    claims = reader.list(RESOURCE_CLAIMS, namespace=FILLER_NAMESPACE).items if served else []
    return _Present(
        space,
        {pod["metadata"]["name"]: pod for pod in pods if has_our_label(pod)},
        {claim["metadata"]["name"]: claim for claim in claims if has_our_label(claim)},
        strangers=not all(has_our_label(item) for item in (*pods, *claims)),
    )


def _fits(pod: Json, wanted: Mapping[str, Filler]) -> bool:
    """Whether a pod is the filler that is asked for, and holds its device or still may."""
    name = pod["metadata"]["name"]
    filler = wanted.get(name)
    if filler is None or is_finished(pod) or pod["metadata"].get("deletionTimestamp"):
        return False
    spec = pod["spec"]
    if spec.get("priorityClassName") != manifests.priority_class_name(filler.priority):
        return False
    if filler.claimed:
        return bool(spec.get("resourceClaims"))
    limits = spec["containers"][0].get("resources", {}).get("limits") or {}
    record = (pod["metadata"].get("annotations") or {}).get(GPUS_ANNOTATION, "")
    return record == ",".join(filler.shares) and limits == {filler.resource: str(len(filler.shares))}


def _claims(claim: Json, wanted: Mapping[str, Filler]) -> bool:
    filler = wanted.get(claim["metadata"]["name"])
    if filler is None or not filler.claimed or claim["metadata"].get("deletionTimestamp"):
        return False
    return _selectors(claim) == _selectors(manifests.claim(filler))


def _selectors(claim: Json) -> object:
    return [request.get("exactly", {}).get("selectors") for request in claim["spec"]["devices"]["requests"]]


def _make(writer: Writer, present: _Present, missing: list[Filler]) -> Iterator[Change]:
    if not missing:
        return
    rehearsed = present.space is None
    if present.space is None:
        yield Change(NAMESPACES, Verb.CREATED, _create(writer, NAMESPACES, manifests.namespace()))
    for number in sorted({filler.priority for filler in missing}):
        if writer.find(PRIORITY_CLASSES, manifests.priority_class_name(number)) is None:
            rehearsed = True
            made = _create(writer, PRIORITY_CLASSES, manifests.priority_class(number))
            yield Change(PRIORITY_CLASSES, Verb.CREATED, made)
    # In a dry run the server knows neither a namespace nor a class that would have been made just before.
    untried = rehearsed and writer.dry_run is DryRun.SERVER

    def create(item: tuple[Resource, Json]) -> Change:
        resource, body = item
        return Change(resource, Verb.CREATED, body if untried else _create(writer, resource, body))

    claims = [manifests.claim(filler) for filler in missing if filler.claimed and filler.name not in present.claims]
    yield from run_ordered(create, [(RESOURCE_CLAIMS, claim) for claim in claims])
    yield from run_ordered(create, [(PODS, manifests.pod(filler)) for filler in missing])


def _create(writer: Writer, resource: Resource, body: Json) -> Json:
    """Create an object, waiting for what is on its way: a namesake that goes, the namespace's service account.

    Raises:
        _SpaceLost: the namespace is going or gone.
    """
    metadata, end = body["metadata"], time.monotonic() + _PATIENCE_SECONDS
    problem: ApiError
    while True:
        try:
            return writer.create(resource, body)
        except AlreadyExists as error:
            live, problem = writer.find(resource, metadata["name"], metadata.get("namespace")), error
            if live is not None and not live["metadata"].get("deletionTimestamp"):
                # Somebody else does the same at this moment.
                return live
        except NotFound as error:
            raise _SpaceLost from error
        except Forbidden as error:
            if any(cause.get("reason") == _TERMINATING for cause in error.details.get("causes") or ()):
                raise _SpaceLost from error
            if _NO_ACCOUNT not in error.message:
                raise
            problem = error
        if time.monotonic() >= end:
            raise problem
        time.sleep(_POLL_SECONDS)


def _delete(writer: Writer, resource: Resource, items: list[Json]) -> Iterator[Change]:
    def delete(item: Json) -> Change:
        # Another of that name has taken its place: the one that was meant has gone.
        with contextlib.suppress(Conflict):
            writer.delete(resource, item, grace_seconds=0 if resource is PODS else None)
        return Change(resource, Verb.DELETED, item)

    yield from run_ordered(delete, items)
