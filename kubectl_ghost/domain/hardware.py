"""Declared hardware: what a node is said to have. Everything on the cluster is derived from this.

The declaration lives in one annotation on the node, as compact JSON with a format version, so that any later run of
the tool, on any machine, can derive the same objects from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION

FORMAT = 1


class Advertise(StrEnum):
    """How a node's GPUs are offered to pods."""

    BOTH = "both"
    DRA = "dra"
    DEVICE_PLUGIN = "device-plugin"

    @property
    def slices(self) -> bool:
        """Whether ResourceSlices are published."""
        return self is not Advertise.DEVICE_PLUGIN

    @property
    def capacity(self) -> bool:
        """Whether `nvidia.com/gpu` stands in the node's capacity."""
        return self is not Advertise.DRA


class TaintMode(StrEnum):
    """When nodes carry kwok's NoSchedule taint: where there are nodes that are not simulated, or regardless."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A node taint; `value` is empty where there is none."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What the nodes of a pool share.

    `model` is a catalogue key; `cpu` and `memory` are quantities; `tainted` is the outcome of `taint` when the pool was
    last written; zones and racks are dealt out to the nodes in turn.
    """

    name: str
    model: str
    gpus: int
    advertise: Advertise
    cpu: str
    memory: str
    pods: int
    taint: TaintMode = TaintMode.AUTO
    tainted: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    zones: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeHardware:
    """The whole declaration of one node: its pool's settings, and its own place in the pool.

    `pool_size` stands on the pool's first node alone: the number of nodes that the pool is to have, so that a command
    that was interrupted while it made them can be finished.
    """

    settings: PoolSettings
    index: int
    pool_size: int | None = None

    @property
    def node_name(self) -> str:
        """`<pool>-<index>`: the name of every node that this tool creates."""
        return f"{self.settings.name}-{self.index}"


def encode(hardware: NodeHardware) -> str:
    """The annotation's text: the same declaration always gives the same bytes."""
    settings = hardware.settings
    pool: dict[str, Any] = {
        "name": settings.name,
        "model": settings.model,
        "gpus": settings.gpus,
        "advertise": settings.advertise.value,
        "cpu": settings.cpu,
        "memory": settings.memory,
        "pods": settings.pods,
        "taint": settings.taint.value,
        "tainted": settings.tainted,
        "labels": dict(settings.labels),
        "taints": [[taint.key, taint.value, taint.effect] for taint in settings.taints],
        "zones": list(settings.zones),
        "racks": list(settings.racks),
    }
    pool = {key: value for key, value in pool.items() if value not in ({}, [])}
    declaration = {"format": FORMAT, "index": hardware.index, "pool": pool}
    if hardware.pool_size is not None:
        declaration["nodes"] = hardware.pool_size
    return json.dumps(declaration, separators=(",", ":"), sort_keys=True)


def decode(text: str, node_name: str) -> NodeHardware:
    """The declaration that `encode` wrote.

    Raises:
        GhostError: naming the node, if the annotation is damaged, belongs to another node, or is of a format or names
            a GPU model that this version does not know.
    """
    try:
        declaration = _mapping(json.loads(text))
        if declaration["format"] != FORMAT:
            raise GhostError(
                f'node "{node_name}" is declared in format {declaration["format"]}, this version knows {FORMAT}',
                "Use the version of kubectl-ghost that wrote it, or a newer one.",
            )
        size = declaration.get("nodes")
        hardware = NodeHardware(
            _settings(json.dumps(_mapping(declaration["pool"]))),
            _number(declaration["index"]),
            None if size is None else _number(size),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise GhostError(
            f'the hardware annotation of node "{node_name}" cannot be read: {error!r}',
            f"Restore the annotation {HARDWARE_ANNOTATION} of that node, or delete its pool with: "
            f"kubectl ghost delete-pool {node_name.rpartition('-')[0]}",
        ) from error
    if hardware.node_name != node_name:
        raise GhostError(
            f'the hardware annotation of node "{node_name}" is that of node "{hardware.node_name}"',
            f"Restore the annotation {HARDWARE_ANNOTATION} of node {node_name}.",
        )
    return hardware


@lru_cache(maxsize=256)
def _settings(text: str) -> PoolSettings:
    """A pool's settings from their JSON; kept, since all nodes of a pool carry the same."""
    pool = json.loads(text)
    key = _text(pool["model"])
    if key not in model_keys():
        raise ValueError(f"GPU model {key} is not in this version's catalogue")
    return PoolSettings(
        name=_text(pool["name"]),
        model=key,
        gpus=_number(pool["gpus"]),
        advertise=Advertise(pool["advertise"]),
        cpu=_text(pool["cpu"]),
        memory=_text(pool["memory"]),
        pods=_number(pool["pods"]),
        taint=TaintMode(pool["taint"]),
        tainted=pool["tainted"] is True,
        labels=tuple(sorted((key, _text(value)) for key, value in _mapping(pool.get("labels", {})).items())),
        taints=tuple(Taint(_text(key), _text(effect), _text(value)) for key, value, effect in pool.get("taints", ())),
        zones=tuple(map(_text, pool.get("zones", ()))),
        racks=tuple(map(_text, pool.get("racks", ()))),
    )


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no mapping")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is no number of things")
    return value
