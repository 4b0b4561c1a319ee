"""Which fillers are asked for, which there are, and what has to be done about the difference."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_CLAIMS
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import has_our_label, is_ours
from kubectl_ghost.domain.holders import is_finished
from kubectl_ghost.domain.keys import FILLER_NAMESPACE, GPUS_ANNOTATION, Json
from kubectl_ghost.manifests import fillers as manifests
from kubectl_ghost.manifests.fillers import Filler, fillers, place_of
from kubectl_ghost.operations.fleet import OURS, hardware_of


@dataclass(slots=True)
class Declared:
    """What declarations ask for, as far as they are known. Others may declare something else at any time.

    Attributes:
        asked: the fillers that each node asks for, by their names.
        whole: whether a node that is not in `asked` asks for none; else fillers of other nodes are left alone.
        unread: nodes whose declarations cannot be read: their fillers are left alone.
        going: nodes that ask for nothing, whatever is declared on them.
    """

    asked: dict[str, dict[str, Filler]]
    whole: bool = False
    unread: set[str] = field(default_factory=set)
    going: frozenset[str] = frozenset()

    def judges(self, name: str) -> bool:
        """Whether it is known if a filler of this name is to be there."""
        node = place_of(name)[0]
        return node in self.asked or (self.whole and node not in self.unread)

    def filler(self, name: str) -> Filler | None:
        """The filler of this name, if one is asked for."""
        return self.asked.get(place_of(name)[0], {}).get(name)

    def fillers(self) -> Iterator[Filler]:
        """All that are asked for."""
        for found in self.asked.values():
            yield from found.values()

    def read_again(self, reader: Reader, names: Iterable[str]) -> bool:
        """Take the declarations that stand on these nodes now; returns whether any asks for something else."""
        changed = False
        wanted = sorted(set(names) - self.going)
        for name, node in zip(wanted, run_ordered(lambda name: reader.find(NODES, name), wanted), strict=True):
            now = _asked(node)
            if now is None:
                self.asked.pop(name, None)
                self.unread.add(name)
            else:
                changed = changed or now != self.asked.get(name, {})
                self.asked[name] = now
        return changed


def _asked(node: Json | None) -> dict[str, Filler] | None:
    """The fillers that a node asks for; None if that cannot be told."""
    if node is None or not has_our_label(node):
        return {}
    try:
        return by_name(fillers(hardware_of(node))) if is_ours(node) else None
    except GhostError:
        return None


def by_name(found: Iterable[Filler]) -> dict[str, Filler]:
    """These fillers by their names."""
    return {filler.name: filler for filler in found}


def awaited(reader: Reader, going: Collection[str]) -> set[str]:
    """The nodes of the whole fleet, but for those that are going, that ask for fillers now."""
    nodes = {
        node["metadata"]["name"]: node for node in reader.list(NODES, label_selector=OURS, metadata_only=True).items
    }
    return {name for name, node in nodes.items() if name not in going and _asked(node)}


@dataclass(slots=True)
class Present:
    """What there is of ours in the namespace; `space` is None where there is none, or it is on its way out."""

    space: Json | None = None
    pods: dict[str, Json] = field(default_factory=dict)
    claims: dict[str, Json] = field(default_factory=dict)
    strangers: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing is in the namespace but what goes by itself."""
        return not self.strangers and all(map(is_going, (*self.pods.values(), *self.claims.values())))


def is_going(item: Json) -> bool:
    """Whether an object has been deleted and something keeps it for the moment."""
    return bool(item["metadata"].get("deletionTimestamp"))


def look(reader: Reader, space: Json | None) -> Present:
    """Read what is in the namespace."""
    if space is None:
        return Present()
    # The pods first: a claim is made before its pod and deleted after it.
    pods = reader.list(PODS, namespace=FILLER_NAMESPACE).items
    served = reader.served(RESOURCE_CLAIMS)
    claims = reader.list(RESOURCE_CLAIMS, namespace=FILLER_NAMESPACE).items if served else []
    return Present(
        space,
        {pod["metadata"]["name"]: pod for pod in pods if has_our_label(pod)},
        {claim["metadata"]["name"]: claim for claim in claims if has_our_label(claim)},
        strangers=not all(has_our_label(item) for item in (*pods, *claims)),
    )


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done: pods and claims that are to go, then fillers to make, some of which have their claims."""

    misfits: list[Json]
    strays: list[Json]
    missing: list[Filler]
    unclaimed: list[Filler]

    @property
    def nodes(self) -> set[str]:
        """The nodes that it is about."""
        names = [item["metadata"]["name"] for item in (*self.misfits, *self.strays)]
        return {place_of(name)[0] for name in (*names, *(filler.name for filler in self.missing))}


def judge(present: Present, declared: Declared) -> Work:
    """Compare what there is with what is asked for. What is going already is not deleted again, but does not count."""
    unfit = {
        name: pod
        for name, pod in present.pods.items()
        if declared.judges(name) and not _fits(pod, declared.filler(name), present.claims)
    }
    strays = [
        claim
        for name, claim in present.claims.items()
        if declared.judges(name) and not is_going(claim) and not _serves(claim, declared.filler(name))
    ]
    missing = [filler for filler in declared.fillers() if filler.name not in present.pods or filler.name in unfit]
    stray = {claim["metadata"]["name"] for claim in strays}
    usable = {name for name, claim in present.claims.items() if name not in stray and not is_going(claim)}
    unclaimed = [filler for filler in missing if filler.claimed and filler.name not in usable]
    return Work([pod for pod in unfit.values() if not is_going(pod)], strays, missing, unclaimed)


def _fits(pod: Json, filler: Filler | None, claims: Mapping[str, Json]) -> bool:
    """Whether a pod is the filler that is asked for, and holds its device or still may."""
    if filler is None or is_finished(pod) or is_going(pod):
        return False
    spec = pod["spec"]
    if spec.get("priorityClassName") != manifests.priority_class_name(filler.priority):
        return False
    if filler.claimed:
        claim = claims.get(filler.name)
        return bool(spec.get("resourceClaims")) and claim is not None and _has(pod, claim) and _serves(claim, filler)
    limits = spec["containers"][0].get("resources", {}).get("limits") or {}
    record = (pod["metadata"].get("annotations") or {}).get(GPUS_ANNOTATION, "")
    return record == ",".join(filler.shares) and limits == {filler.resource: str(len(filler.shares))}


def _has(pod: Json, claim: Json) -> bool:
    """Whether a pod has its claim or can get it: one that is going stays with the pod that has it, for its life."""
    users = (claim.get("status") or {}).get("reservedFor") or ()
    return not is_going(claim) or any(user.get("uid") == pod["metadata"]["uid"] for user in users)


def _serves(claim: Json, filler: Filler | None) -> bool:
    if filler is None or not filler.claimed:
        return False
    return _selectors(claim) == _selectors(manifests.claim(filler))


def _selectors(claim: Json) -> object:
    return [request.get("exactly", {}).get("selectors") for request in claim["spec"]["devices"]["requests"]]
