"""`cordon` and `uncordon`: whether the scheduler may put pods on a node of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kubectl_ghost.cluster.errors import Conflict
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import is_ours
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.reconcile import update_node

_ATTEMPTS = 8
_PREFIXES = ("node/", "nodes/")


def read_nodes(reader: Reader, names: Sequence[str], selector: str | None, verb: str) -> list[Json]:
    """The nodes that a command line means, all of them ours.

    Args:
        names: names, also as `-o name` prints them (`node/node-0`); none with a selector.
        selector: label selector.
        verb: kubectl's command for the same on a real node.

    Raises:
        NotFound: there is no node of that name.
        GhostError: naming the first node that is not simulated by this tool.
    """
    if selector is not None:
        nodes = reader.list(NODES, label_selector=selector).items
    else:
        nodes = [reader.get(NODES, name) for name in dict.fromkeys(map(_bare, names))]
    for node in nodes:
        if not is_ours(node):
            name = node["metadata"]["name"]
            raise GhostError(
                f'node "{name}" is not simulated by kubectl-ghost, so nothing was written',
                f"For a node of others use: kubectl {verb} {name}",
            )
    return nodes


def set_schedulable(writer: Writer, nodes: Sequence[Json], *, schedulable: bool) -> Iterator[Change]:
    """Cordon nodes, or lift it; one that is so already is not written to.

    Raises:
        Conflict: others keep changing a node.
    """
    for node in nodes:
        yield _set_one(writer, node, schedulable=schedulable)


def _set_one(writer: Writer, live: Json, *, schedulable: bool) -> Change:
    live = _taken_over(writer, live)
    for attempt in range(_ATTEMPTS):
        cordoned = bool(live.get("spec", {}).get("unschedulable"))
        if cordoned != schedulable:
            return Change(NODES, Verb.ALREADY_UNCORDONED if schedulable else Verb.ALREADY_CORDONED, live)
        try:
            after = writer.patch(NODES, live, {"spec": {"unschedulable": None if schedulable else True}})
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
            live = writer.get(NODES, live["metadata"]["name"])
        else:
            return Change(NODES, Verb.UNCORDONED if schedulable else Verb.CORDONED, after)
    raise AssertionError("unreachable")


def _taken_over(writer: Writer, live: Json) -> Json:
    """The node with its cordon, if a fault has put it on, made the user's: the end of the fault does not lift it."""
    with contextlib.suppress(GhostError):
        if hardware_of(live).cordoned:
            return update_node(writer, live, lambda declared: replace(declared, cordoned=False))[0].body
    return live


def _bare(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name
