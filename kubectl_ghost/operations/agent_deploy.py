"""The metrics agent on the cluster: making what it needs and taking it away.

Nothing of it is ever changed: what differs from what is asked for is deleted and made anew, so the guard need allow no
more than that. Each object carries a digest of what it was made from.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Final

from kubectl_ghost.cluster.errors import Conflict
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    PODS,
    SERVICE_ACCOUNTS,
    Resource,
)
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import has_our_label, is_simulated
from kubectl_ghost.domain.keys import AGENT_NAME, AGENT_NAMESPACE, Json
from kubectl_ghost.domain.real_nodes import nodes_for_pods
from kubectl_ghost.manifests import agent as manifests
from kubectl_ghost.manifests.agent import AgentPod, digest_of
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.creating import SpaceLost, create_soon, settled

_POLL_SECONDS = 0.2
_ATTEMPTS = 8
_READ_ONE_BY_ONE = 20
"""So many real nodes are read singly, since the list of all may hold thousands of simulated ones."""
_KINDS: Final = (NAMESPACES, SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, PODS)
"""In the order in which one needs the other."""


def real_nodes(reader: Reader) -> list[str]:
    """Names of the nodes that the agent's pod can run on; none if every node is simulated."""
    listed = reader.list(NODES, metadata_only=True).items
    names = [node["metadata"]["name"] for node in listed if not is_simulated(node)]
    if len(names) > _READ_ONE_BY_ONE:
        return nodes_for_pods(reader.list(NODES).items)
    return nodes_for_pods(node for name in names if (node := reader.find(NODES, name)) is not None)


def find_agent(reader: Reader) -> Json | None:
    """The agent's pod if it runs, or is about to."""
    pod = reader.find(PODS, AGENT_NAME, AGENT_NAMESPACE)
    if pod is None or not has_our_label(pod) or _is_over(pod):
        return None
    return pod


def is_as_asked(pod: Json, wanted: AgentPod) -> bool:
    """Whether a running agent does what this one would."""
    return digest_of(pod) == digest_of(manifests.pod(wanted, []))


def deploy_agent(writer: Writer, wanted: AgentPod, nodes: list[str]) -> Iterator[Change]:
    """Have the agent run as it is asked for, on one of these nodes.

    Raises:
        GhostError: something of another owner has one of its names, or something keeps it from being made.
    """
    for _ in range(_ATTEMPTS):
        try:
            yield from _deploy(writer, wanted, nodes)
        except SpaceLost:
            time.sleep(_POLL_SECONDS)
            continue
        return
    raise GhostError(
        f'what is made in namespace "{AGENT_NAMESPACE}" is deleted again and again',
        "Something else is at it: find out what, and run again.",
    )


def delete_agent(writer: Writer) -> Iterator[Change]:
    """Delete the agent and everything that was made for it."""
    for resource in reversed(_KINDS):
        live = _find(writer, resource)
        if live is not None and has_our_label(live):
            yield _deleted(writer, resource, live)


def wait_until_deleted(reader: Reader, *, timeout: float) -> None:
    """Return when the agent's namespace has gone, with all that was in it.

    Raises:
        GhostError: it does not go in time.
    """
    end = time.monotonic() + timeout
    while (space := reader.find(NAMESPACES, AGENT_NAMESPACE)) is not None:
        if not space["metadata"].get("deletionTimestamp"):
            # Somebody has made it anew meanwhile, or it is not ours.
            return
        if time.monotonic() >= end:
            raise GhostError(
                f'timed out: namespace "{AGENT_NAMESPACE}" is marked for deletion and still there',
                f"See what keeps it: kubectl get namespace {AGENT_NAMESPACE} -o yaml",
            )
        time.sleep(_POLL_SECONDS)


def _deploy(writer: Writer, wanted: AgentPod, nodes: list[str]) -> Iterator[Change]:
    space = settled(writer, AGENT_NAMESPACE, writer.find(NAMESPACES, AGENT_NAMESPACE), needed=True)
    present = {resource.kind: _find(writer, resource) for resource in _KINDS}
    present["Namespace"] = space
    _refuse_strangers(present)
    asked = _objects(wanted, nodes)
    kept = {body["kind"] for _, body in asked if _is_current(body, present[body["kind"]])}
    for resource, body in reversed(asked):
        live = present[body["kind"]]
        if live is not None and body["kind"] not in kept and not live["metadata"].get("deletionTimestamp"):
            yield _deleted(writer, resource, live)
    # In a dry run the server does not know a namespace that would have been made just before.
    untried = space is None and writer.dry_run is DryRun.SERVER
    for resource, body in asked:
        live = present[body["kind"]]
        if live is not None and body["kind"] in kept:
            yield Change(resource, Verb.UNCHANGED, live)
        elif untried and resource.namespaced:
            yield Change(resource, Verb.CREATED, body)
        else:
            yield Change(resource, Verb.CREATED, create_soon(writer, resource, body))


def _objects(wanted: AgentPod, nodes: list[str]) -> list[tuple[Resource, Json]]:
    bodies = (
        manifests.namespace(),
        manifests.service_account(),
        manifests.cluster_role(read_only=wanted.read_only),
        manifests.cluster_role_binding(),
        manifests.config_map(wanted),
        manifests.pod(wanted, nodes),
    )
    return list(zip(_KINDS, bodies, strict=True))


def _find(reader: Reader, resource: Resource) -> Json | None:
    if resource is NAMESPACES:
        return reader.find(NAMESPACES, AGENT_NAMESPACE)
    return reader.find(resource, AGENT_NAME, AGENT_NAMESPACE if resource.namespaced else None)


def _refuse_strangers(present: dict[str, Json | None]) -> None:
    for kind, live in present.items():
        if live is not None and not has_our_label(live):
            name = live["metadata"]["name"]
            raise GhostError(
                f'{kind} "{name}" exists and is not managed by kubectl-ghost',
                "Without it: kubectl ghost metrics serve needs nothing in the cluster.",
            )


def _is_current(body: Json, live: Json | None) -> bool:
    """Whether what is there is what is asked for, and stays."""
    if live is None or live["metadata"].get("deletionTimestamp"):
        return False
    if body["kind"] == "Namespace":
        return True
    return digest_of(live) == digest_of(body) and not _is_over(live)


def _is_over(item: Json) -> bool:
    """Whether it is a pod that has ended, or anything that is going."""
    return item.get("status", {}).get("phase") in ("Succeeded", "Failed") or "deletionTimestamp" in item["metadata"]


def _deleted(writer: Writer, resource: Resource, live: Json) -> Change:
    # Another of that name has taken its place: the one that was meant has gone.
    with contextlib.suppress(Conflict):
        writer.delete(resource, live)
    return Change(resource, Verb.DELETED, live)
