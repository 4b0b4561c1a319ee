"""`drain`: cordon nodes of ours and evict their pods, as `kubectl drain` does it on any node.

Everything is read anew each time, so that the same command goes on wherever it was ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field

from kubectl_ghost.cluster.errors import Blocked, Conflict, Forbidden, ServerError, TooManyRequests
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, PODS, Resource
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.draining import DrainPlan, DrainRules, daemon_set_of, plan_drain
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.cordon import set_schedulable

DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", True)
_RETRY_SECONDS = 1.0
"""Between two tries to evict a pod that a budget holds; kubectl waits five."""
_POLL_SECONDS = 0.2

Tell = Callable[[str], None]
"""Told a line for the user about what is going on, beside the changes."""


@dataclass(frozen=True, slots=True)
class DrainRequest:
    """kubectl drain's flags.

    `grace_seconds` is None for each pod's own; `timeout` is in seconds for the pods of one node, 0 for no end.
    """

    rules: DrainRules = field(default_factory=DrainRules)
    pod_selector: str | None = None
    grace_seconds: int | None = None
    disable_eviction: bool = False
    timeout: float = 0.0


def drain_nodes(
    writer: Writer,
    nodes: Sequence[Json],
    request: DrainRequest,
    tell: Tell,
    failures: MutableMapping[str, GhostError],
    then: Callable[[Json], Iterator[Change]] | None = None,
) -> Iterator[Change]:
    """Cordon all nodes, then drain one after the other; a node that cannot be drained does not keep the others.

    Args:
        nodes: nodes of ours, as last read.
        failures: receives, by node name, why a node was not drained.
        then: what to do with a node that is drained.
    """
    if request.pod_selector is not None and nodes:
        # A selector that the server does not understand is told of before anything is written.
        _pods_on(writer, nodes[0], request)
    cordoned = []
    for change in set_schedulable(writer, nodes, schedulable=False):
        cordoned.append(change.body)
        yield change
    for node in cordoned:
        name = node["metadata"]["name"]
        try:
            yield from _drain(writer, node, request, tell)
        except _CannotDrain as error:
            failures[name] = error
            if len(nodes) > 1:
                tell(f"error: {error.message}, continuing command...")
            continue
        yield Change(NODES, Verb.DRAINED, node)
        if then is not None:
            yield from then(node)


class _CannotDrain(GhostError):
    """One node cannot be drained now, and why."""

    def __init__(self, node: Json, reasons: Sequence[str]) -> None:
        name = node["metadata"]["name"]
        aggregate = reasons[0] if len(reasons) == 1 else f"[{', '.join(reasons)}]"
        super().__init__(
            f'unable to drain node "{name}" due to error: {aggregate}',
            f"The node stays cordoned until: kubectl ghost uncordon {name}\nTo go on, run the same command again.",
        )


def combined(failures: Sequence[GhostError]) -> GhostError:
    """One error of the failures of several nodes, at least one."""
    first, *others = failures
    if not others:
        return first
    return GhostError("\nerror: ".join(failure.message for failure in failures), first.hint)


def _drain(writer: Writer, node: Json, request: DrainRequest, tell: Tell) -> Iterator[Change]:
    plan = _plan(writer, node, request)
    if plan.refusals:
        raise _CannotDrain(node, plan.refusals)
    for warning in plan.warnings:
        tell(f"Warning: {warning}")
    yield from _Removal(writer, node, request, tell).run(plan.going)


def _plan(reader: Reader, node: Json, request: DrainRequest) -> DrainPlan:
    pods = _pods_on(reader, node, request)
    named = sorted({key for key in map(daemon_set_of, pods) if key is not None})
    present = {key for key in named if reader.find(DAEMON_SETS, key[1], key[0]) is not None}
    return plan_drain(pods, request.rules, present)


def _pods_on(reader: Reader, node: Json, request: DrainRequest) -> list[Json]:
    on_node = f"spec.nodeName={node['metadata']['name']}"
    return reader.list(PODS, field_selector=on_node, label_selector=request.pod_selector).items


class _Removal:
    """The pods of one node on their way: not allowed to go yet, or going, each by its uid."""

    def __init__(self, writer: Writer, node: Json, request: DrainRequest, tell: Tell) -> None:
        self._writer, self._node, self._request, self._tell = writer, node, request, tell
        self._held: dict[str, Json] = {}
        self._going: dict[str, Json] = {}
        self._reasons: dict[str, str] = {}
        self._verb = Verb.DELETED if request.disable_eviction else Verb.EVICTED

    def run(self, pods: Sequence[Json]) -> Iterator[Change]:
        """Ask for every pod to go, again and again where a budget holds it, until none is left."""
        self._held = {pod["metadata"]["uid"]: pod for pod in pods}
        deadline = time.monotonic() + (self._request.timeout or math.inf)
        if not self._request.disable_eviction:
            yield from (Change(PODS, Verb.EVICTING, pod) for pod in pods)
        next_try = -math.inf
        while self._held or self._going:
            told = dict(self._reasons)
            if time.monotonic() >= next_try:
                self._ask_all()
                next_try = time.monotonic() + _RETRY_SECONDS
            if self._writer.dry_run is not DryRun.NONE:
                yield from self._rehearsed()
                return
            yield from self._gone()
            self._tell_news(told)
            now = time.monotonic()
            if (self._held or self._going) and now >= deadline:
                raise _CannotDrain(self._node, self._overdue())
            if self._held or self._going:
                time.sleep(max(0.0, min(_POLL_SECONDS, deadline - now)))

    def _ask_all(self) -> None:
        answers = run_ordered(self._ask, list(self._held.values()))
        for uid, reason in zip(list(self._held), answers, strict=True):
            if reason is None:
                self._going[uid] = self._held.pop(uid)
            else:
                self._reasons[uid] = reason

    def _ask(self, pod: Json) -> str | None:
        """Ask the server once; returns why it has to be asked again."""
        grace = self._request.grace_seconds
        try:
            if self._request.disable_eviction:
                self._writer.delete(PODS, pod, node=self._node, grace_seconds=grace)
            else:
                self._writer.evict(pod, node=self._node, grace_seconds=grace)
        except Blocked as error:
            return f'blocked by PodDisruptionBudget "{error.budget}": {error.cause}'
        except (Conflict, TooManyRequests) as error:
            return error.message
        except Forbidden as error:
            # Nothing can be evicted from a namespace that is going; its pods go with it.
            if not error.namespace_is_terminating:
                raise
            return error.message
        except ServerError as error:
            # Two budgets for one pod, say: the pod has to be named, and its node is not drained.
            raise _CannotDrain(self._node, [f"{_evicting(pod)}: {error.message}"]) from error
        return None

    def _gone(self) -> Iterator[Change]:
        on_node = f"spec.nodeName={self._node['metadata']['name']}"
        listed = self._writer.list(PODS, field_selector=on_node, metadata_only=True).items
        present = {pod["metadata"]["uid"] for pod in listed}
        for pods in (self._held, self._going):
            for uid in [uid for uid in pods if uid not in present]:
                yield Change(PODS, self._verb, pods.pop(uid))

    def _tell_news(self, told: dict[str, str]) -> None:
        for uid, pod in self._held.items():
            if self._reasons.get(uid) != told.get(uid):
                self._tell(f"{_evicting(pod)} (will retry after {_RETRY_SECONDS:g}s): {self._reasons[uid]}")

    def _rehearsed(self) -> Iterator[Change]:
        """A dry run is over after one try: nothing that it waits for would ever happen."""
        if self._held:
            raise _CannotDrain(
                self._node, [f"{_evicting(pod)}: {self._reasons[uid]}" for uid, pod in self._held.items()]
            )
        if self._request.disable_eviction:
            yield from (Change(PODS, self._verb, pod) for pod in self._going.values())

    def _overdue(self) -> list[str]:
        limit = f"global timeout reached: {self._request.timeout:g}s"
        held = [f"{_evicting(pod)}: {limit}: {self._reasons[uid]}" for uid, pod in self._held.items()]
        going = [
            f'error when waiting for pod "{pod["metadata"]["name"]}" in namespace "{pod["metadata"]["namespace"]}" '
            f"to terminate: {limit}"
            for pod in self._going.values()
        ]
        return held + going


def _evicting(pod: Json) -> str:
    return f'error when evicting pods/"{pod["metadata"]["name"]}" -n "{pod["metadata"]["namespace"]}"'
