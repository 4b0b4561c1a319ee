"""What a fault does to pods: those whose application it ends fail, those that lose their GPU are evicted."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kubectl_ghost.cluster.errors import Conflict, NotFound
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import PODS
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.breaking import begins
from kubectl_ghost.domain.consequences import consequences
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.expiry import without_what_is_over
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.guard import is_filler
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.holders import GpuKey, Holder, PodName, is_finished, pod_name
from kubectl_ghost.domain.identity import gpu_name, parent_gpu
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.reactions import DeviceTaint, Reaction
from kubectl_ghost.manifests.failed_pod import failed_status
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.clock import now
from kubectl_ghost.operations.holdings import claims_for, find_holders
from kubectl_ghost.operations.pods import pods_on
from kubectl_ghost.operations.selecting import Chosen

_ATTEMPTS = 8
Leaving = dict[str, PodName]
"""The pods that go because of a fault, by uid."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault at one place: a GPU of a node, or with `index` None the node; what follows, and which GPUs it hits."""

    item: Chosen
    index: int | None
    answer: Reaction
    gpus: frozenset[str]


@dataclass(slots=True)
class Seen:
    """One look at the pods on the nodes in question, and at who holds what there."""

    hardware: dict[str, NodeHardware]
    claims: dict[PodName, Json]
    pods: dict[PodName, Json] = field(default_factory=dict)

    _held: dict[GpuKey, list[tuple[Holder, Json]]] | None = None

    def replace(self, pod: Json) -> None:
        """Take a pod as it is now in the place of what it was."""
        self.pods[pod_name(pod)] = pod
        self._held = None

    def of(self, node_name: str, gpus: Collection[str]) -> Iterator[tuple[Holder, Json]]:
        """The holders of any part of these GPUs, with their pods."""
        if self._held is None:
            self._held = self._by_gpu()
        for gpu in sorted(gpus):
            yield from self._held.get((node_name, gpu), ())

    def _by_gpu(self) -> dict[GpuKey, list[tuple[Holder, Json]]]:
        held: dict[GpuKey, list[tuple[Holder, Json]]] = defaultdict(list)
        for (name, device), found in find_holders(
            self.hardware, self.claims.values(), list(self.pods.values())
        ).items():
            held[(name, parent_gpu(device))] += [(holder, self.pods[holder.name]) for holder in found]
        return held


def look(reader: Reader, chosen: Sequence[Chosen], declared: Mapping[str, NodeHardware] | None = None) -> Seen:
    """Read the pods on these nodes and their claims; one by one where they are few.

    Args:
        declared: the nodes' declarations where they have changed since they were chosen: to a pod that comes after a
            fault the device plugin gives none of the GPUs that have failed.
    """
    nodes = {item.name: item.node for item in chosen}
    before = {item.name: item.hardware for item in chosen}
    hardware = {name: without_what_is_over(found, now()) for name, found in {**before, **(declared or {})}.items()}
    pods = {pod_name(pod): pod for pod in pods_on(reader, nodes)}
    claims = claims_for(reader, list(pods.values()))
    return Seen(hardware, {pod_name(claim): claim for claim in claims}, pods)


def fail_holders(writer: Writer, seen: Seen, hits: Sequence[Hit], fault: Fault) -> Iterator[Change]:
    """Let the pods fail whose application the error ends: whoever holds the GPU as the fault begins.

    A pod that comes later to a GPU with such an error runs: what went wrong was the application. A filler runs none.
    """
    ending: dict[PodName, tuple[Json, Hit]] = {}
    for hit in hits:
        if hit.answer.exit_code is not None and begins(seen.hardware[hit.item.name], hit.index, fault):
            for _, pod in seen.of(hit.item.name, hit.gpus):
                if not is_filler(pod) and not _is_going(pod):
                    ending.setdefault(pod_name(pod), (pod, hit))

    def fail(found: tuple[Json, Hit]) -> Json | None:
        return _fail(writer, *found, fault)

    for failed in filter(None, run_ordered(fail, list(ending.values()))):
        seen.replace(failed)
        yield Change(PODS, Verb.FAILED, failed)


def _fail(writer: Writer, pod: Json, hit: Hit, fault: Fault) -> Json | None:
    """The pod as failed; None where it has ended otherwise meanwhile."""
    current: Json | None = pod
    for _ in range(_ATTEMPTS):
        if current is None or current["metadata"]["uid"] != pod["metadata"]["uid"]:
            return None
        if is_finished(current) or _is_going(current):
            return None
        patch = failed_status(current, hit.answer.exit_code or 1, f"{fault.name} on {_place(hit)}", now())
        try:
            return writer.patch(PODS, current, patch, subresource="status", node=hit.item.node)
        except (Conflict, NotFound):
            current = writer.find(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
    raise GhostError(f'pod "{pod["metadata"]["name"]}" is changed by others all the time', "Run the same again.")


def _place(hit: Hit) -> str:
    return hit.item.name if hit.index is None else f"{hit.item.name}/gpu-{hit.index}"


def evict_holders(
    writer: Writer, seen: Seen, hits: Sequence[Hit], leaving: Leaving, *, standing: bool = False
) -> Iterator[Change]:
    """Delete the pods that no controller evicts, as the taint manager deletes: with their own grace period.

    Those are pods of the device-plugin path, and pods served `nvidia.com/gpu` through a claim that the scheduler made
    (kubernetes issue 141290). Each is deleted once, also when something keeps it from going.

    Args:
        leaving: the pods that are going already; those that go now are added.
        standing: as for `losers`.
    """
    yield from run_ordered(lambda lost: evict(writer, lost), losers(seen, hits, leaving, standing=standing))


@dataclass(frozen=True, slots=True)
class Lost:
    """A pod that has lost its GPU, and its node: the guard's evidence."""

    pod: Json
    node: Json


def losers(seen: Seen, hits: Sequence[Hit], leaving: Leaving, *, standing: bool = False) -> list[Lost]:
    """The pods that are to be deleted because of these faults; those that are going are counted, and not deleted again.

    Fillers stay: they are what keeps the GPU busy, and tolerate everything.

    Args:
        leaving: the pods that are going already; those that go now are added.
        standing: the faults were declared some time ago. The device plugin knows nothing of device taints: a GPU that
            is tainted and not unhealthy it gives out again, so that whoever has it now got it in spite of the fault.
    """
    found: list[Lost] = []
    for hit in hits:
        if not hit.answer.evicts:
            continue
        refused = _refused(seen, hit) if standing else hit.gpus
        for gpu in sorted(hit.gpus):
            for holder, pod in seen.of(hit.item.name, (gpu,)):
                uid = pod["metadata"]["uid"]
                if uid in leaving or is_filler(pod) or not _left_to_us(holder, pod):
                    continue
                if holder.claim or gpu in refused:
                    leaving[uid] = pod_name(pod)
                    found += [] if _is_going(pod) else [Lost(pod, hit.item.node)]
    return found


def _refused(seen: Seen, hit: Hit) -> frozenset[str]:
    """The GPUs of a node that the device plugin does not give to anybody."""
    return frozenset(map(gpu_name, consequences(seen.hardware[hit.item.name]).unavailable))


def evict(writer: Writer, lost: Lost) -> Change:
    """Delete one pod that has lost its GPU."""
    # Another pod of that name (of a StatefulSet, say) has taken its place: the one that was meant has gone.
    with contextlib.suppress(Conflict):
        writer.delete(PODS, lost.pod, node=lost.node)
    return Change(PODS, Verb.EVICTED, lost.pod)


def _is_going(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _left_to_us(holder: Holder, pod: Json) -> bool:
    extended = pod.get("status", {}).get("extendedResourceClaimStatus") or {}
    return not holder.claim or holder.claim == extended.get("resourceClaimName")


def cluster_evicts(seen: Seen, hits: Sequence[Hit]) -> Leaving:
    """The pods that the cluster's own controller evicts: holders through claims that do not tolerate the taint."""
    found: Leaving = {}
    for hit in hits:
        taint = hit.answer.taint
        if not hit.answer.evicts or taint is None or not hit.item.hardware.settings.advertise.slices:
            continue
        for holder, pod in seen.of(hit.item.name, hit.gpus):
            claim = seen.claims.get((holder.namespace, holder.claim))
            if claim and not is_filler(pod) and not _left_to_us(holder, pod) and not _tolerates(claim, hit, taint):
                found[pod["metadata"]["uid"]] = pod_name(pod)
    return found


def _tolerates(claim: Json, hit: Hit, taint: DeviceTaint) -> bool:
    """Whether the claim keeps its device in spite of the taint, be it for a time."""
    results = claim["status"]["allocation"]["devices"]["results"]
    struck = [found for found in results if found["pool"] == hit.item.name and parent_gpu(found["device"]) in hit.gpus]
    return all(any(_matches(toleration, taint) for toleration in result.get("tolerations") or ()) for result in struck)


def _matches(toleration: Json, taint: DeviceTaint) -> bool:
    if toleration.get("effect") not in (None, "", taint.effect.value):
        return False
    if toleration.get("key") and toleration["key"] != taint.key:
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == taint.value
