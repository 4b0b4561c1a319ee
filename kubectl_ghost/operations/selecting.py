"""From what a user names to nodes as they are now, with the GPUs that are meant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.domain.errors import GhostError, InputError
from kubectl_ghost.domain.guard import is_ours
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.domain.targets import NodeTarget, check_gpus, choose, parse_targets
from kubectl_ghost.operations.fleet import (
    OURS,
    groups_of,
    hardware_of,
    pool_selector,
    refuse_terminating,
    template_selector,
    unknown_pool,
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A node as last read, its declaration, and the indices of the GPUs that are meant."""

    node: Json
    hardware: NodeHardware
    gpus: tuple[int, ...]

    @property
    def name(self) -> str:
        """The node's name."""
        return str(self.node["metadata"]["name"])


def select(reader: Reader, selection: Selection) -> list[Chosen]:
    """The nodes that a user means; only those that are named are read.

    Raises:
        InputError: if nothing is named, two ways at once are, or there are too few GPUs to choose from.
        GhostError: if a node is not there or not this tool's, a pool is unknown, or a declaration cannot be read.
    """
    words = check_selection(selection)
    chosen = _by_name(reader, words) if words else _by_label(reader, selection)
    refuse_terminating(item.node for item in chosen)
    return chosen if selection.number is None else _random(chosen, selection.number, selection.seed)


def check_selection(selection: Selection) -> list[NodeTarget]:
    """Check what can be checked before the cluster is asked, and read the words.

    Raises:
        InputError: if nothing is named, two ways at once are, or a word is neither a node nor a GPU.
    """
    ways = [bool(selection.words), selection.pool is not None, selection.selector is not None, selection.everything]
    if sum(ways) == 0 and selection.number is None:
        raise InputError("name what is meant", "Name nodes or GPUs (node-3/gpu-2), or use --pool, --selector or --all.")
    if selection.selector is not None and not selection.selector.strip():
        raise InputError("the selector is empty", "Use --all if all simulated nodes are meant.")
    if sum(ways) > 1:
        raise InputError("name nodes, or use one of --pool, --selector and --all: not several of them")
    return parse_targets(selection.words)


def _by_name(reader: Reader, targets: list[NodeTarget]) -> list[Chosen]:
    nodes = list(run_ordered(lambda target: reader.find(NODES, target.node), targets))
    chosen = []
    for target, node in zip(targets, nodes, strict=True):
        if node is None:
            raise GhostError(f'nodes "{target.node}" not found', "See: kubectl ghost get nodes")
        _refuse_foreign(node)
        hardware = hardware_of(node)
        chosen.append(Chosen(node, hardware, check_gpus(target, hardware.settings.gpus)))
    return chosen


def _refuse_foreign(node: Json) -> None:
    if not is_ours(node):
        name = node["metadata"]["name"]
        raise GhostError(
            f'node "{name}" is not simulated by kubectl-ghost, so nothing was written',
            "See what is simulated: kubectl ghost get nodes",
        )


def _by_label(reader: Reader, selection: Selection) -> list[Chosen]:
    pool = selection.pool
    wanted = [OURS] if pool is None else [pool_selector(pool), template_selector(pool)]
    if selection.selector:
        wanted = [f"{labels},{selection.selector}" for labels in wanted]
    listed = [node for labels in wanted for node in reader.list(NODES, label_selector=labels).items]
    nodes = [node for node in listed if is_ours(node)]
    if not nodes and pool is not None:
        raise unknown_pool(pool, groups_of(reader.list(NODES, label_selector=OURS, metadata_only=True).items))
    if not nodes:
        raise GhostError("no simulated node matches", "See: kubectl ghost get nodes --show-labels")
    return [whole(node) for group in groups_of(nodes).values() for node in group]


def whole(node: Json) -> Chosen:
    """A node with all of its GPUs meant."""
    hardware = hardware_of(node)
    return Chosen(node, hardware, tuple(range(hardware.settings.gpus)))


def _random(chosen: list[Chosen], number: int, seed: int) -> list[Chosen]:
    pairs = [(item.name, index) for item in chosen for index in item.gpus]
    return only(chosen, choose(pairs, number, seed))


def only(chosen: Iterable[Chosen], pairs: Iterable[tuple[str, int]]) -> list[Chosen]:
    """Of these nodes, those with the named GPUs: (node name, index)."""
    wanted = set(pairs)
    narrowed = [
        replace(item, gpus=tuple(index for index in item.gpus if (item.name, index) in wanted)) for item in chosen
    ]
    return [item for item in narrowed if item.gpus]
