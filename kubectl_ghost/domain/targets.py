"""Which GPUs a user means: by name, by pool or label, or a number of them at random.

A GPU is `node-3/gpu-2`, or the two words `node-3 gpu-2`; a node alone means all of its GPUs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.identity import gpu_name

_GPU = re.compile(r"gpu-(0|[1-9]\d{0,2})")


@dataclass(frozen=True, slots=True, order=True)
class NodeTarget:
    """A node, and the GPUs of it that are meant; None for all."""

    node: str
    gpus: tuple[int, ...] | None = None


def parse_targets(words: Sequence[str]) -> list[NodeTarget]:
    """The targets that words name, one for each node, in the order of their first mention.

    Raises:
        InputError: if a word has another form.
    """
    found: dict[str, set[int] | None] = {}
    last: str | None = None
    for word in words:
        node, slash, gpu = word.partition("/")
        if not slash and last is not None and _GPU.fullmatch(word):
            _add(found, last, word)
            continue
        if not node or (slash and not gpu):
            raise InputError(f'invalid target "{word}"', "Name a GPU as node-3/gpu-2, or a node for all of its GPUs.")
        if slash:
            _add(found, node, gpu)
            last = None
        else:
            # Named alone: all of it, unless a GPU follows.
            found.setdefault(node, None)
            last = node
    return [NodeTarget(node, None if gpus is None else tuple(sorted(gpus))) for node, gpus in found.items()]


def _add(found: dict[str, set[int] | None], node: str, gpu: str) -> None:
    match = _GPU.fullmatch(gpu)
    if match is None:
        raise InputError(f'invalid GPU "{gpu}" of node "{node}"', "GPUs are gpu-0, gpu-1 and so on.")
    found[node] = {*(found.get(node) or ()), int(match.group(1))}


def check_gpus(target: NodeTarget, gpus: int) -> tuple[int, ...]:
    """The indices of the GPUs that are meant, on a node with so many.

    Raises:
        InputError: naming a GPU that the node does not have.
    """
    if target.gpus is None:
        return tuple(range(gpus))
    for index in target.gpus:
        if index >= gpus:
            raise InputError(f'node "{target.node}" has no {gpu_name(index)}', f"It has gpu-0 to {gpu_name(gpus - 1)}.")
    return target.gpus


def choose(targets: Sequence[tuple[str, int]], number: int, seed: int) -> list[tuple[str, int]]:
    """So many of these at random, in their order; the same seed chooses the same.

    Raises:
        InputError: if there are fewer.
    """
    if number > len(targets):
        raise InputError(f"{number} GPU(s) were asked for at random, and there are {len(targets)}")
    chosen = set(random.Random(seed).sample(range(len(targets)), number))
    return [target for position, target in enumerate(targets) if position in chosen]
