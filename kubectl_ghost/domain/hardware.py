"""Declared hardware: what a node is said to have. Everything on the cluster is derived from this.

The declaration lives in one annotation on the node, as compact JSON with a format version, so that any later run of
the tool, on any machine, can derive the same objects from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from kubectl_ghost.domain.errors import GhostError

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
    """The whole declaration of one node: its pool's settings, and its own place in the pool."""

    settings: PoolSettings
    index: int

    @property
    def node_name(self) -> str:
        """`<pool>-<index>`: the name of every node that this tool creates."""
        return f"{self.settings.name}-{self.index}"

    def with_settings(self, settings: PoolSettings) -> NodeHardware:
        """The same node in a pool of other settings; what is the node's own stays."""
        return replace(self, settings=settings)


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
    return json.dumps(declaration, separators=(",", ":"), sort_keys=True)


def decode(text: str, node_name: str) -> NodeHardware:
    """The declaration that `encode` wrote.

    Raises:
        GhostError: naming the node, if the annotation is damaged or of a format that this version does not know.
    """
    try:
        declaration = json.loads(text)
        if declaration["format"] != FORMAT:
            raise GhostError(
                f'node "{node_name}" is declared in format {declaration["format"]}, this version knows {FORMAT}',
                "Use the version of kubectl-ghost that wrote it, or a newer one.",
            )
        pool = declaration["pool"]
        settings = PoolSettings(
            name=pool["name"],
            model=pool["model"],
            gpus=int(pool["gpus"]),
            advertise=Advertise(pool["advertise"]),
            cpu=pool["cpu"],
            memory=pool["memory"],
            pods=int(pool["pods"]),
            taint=TaintMode(pool["taint"]),
            tainted=bool(pool["tainted"]),
            labels=tuple(sorted(pool.get("labels", {}).items())),
            taints=tuple(Taint(key, effect, value) for key, value, effect in pool.get("taints", [])),
            zones=tuple(pool.get("zones", ())),
            racks=tuple(pool.get("racks", ())),
        )
        return NodeHardware(settings, int(declaration["index"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GhostError(
            f'the hardware annotation of node "{node_name}" cannot be read: {error!r}',
            f"Delete its pool, or restore the annotation kubectl-ghost.dev/hardware of node {node_name}.",
        ) from error
