"""Pods of the device-plugin path for which a node's hardware has nothing: they stand there without their GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kubectl_ghost.domain.devices import device_of, offers
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.holders import assignments, is_finished, pod_name, recorded_gpus, requested_devices
from kubectl_ghost.domain.keys import Json


def unserved(hardware: Mapping[str, NodeHardware], pods: Iterable[Json]) -> list[Json]:
    """The pods that get fewer devices than they ask for, or whose record names one that is not there.

    Args:
        hardware: the nodes' declarations by node name; pods elsewhere are ignored.
    """
    on_node: dict[str, list[Json]] = defaultdict(list)
    for pod in pods:
        if not is_finished(pod) and requested_devices(pod):
            on_node[pod["spec"]["nodeName"]].append(pod)
    return [pod for name, found in on_node.items() if name in hardware for pod in _unserved(hardware[name], found)]


def _unserved(hardware: NodeHardware, pods: list[Json]) -> Iterable[Json]:
    offered = offers(hardware)
    given = assignments(pods, offered)
    there = {device_of(share) for offer in offered.values() for share in offer.devices}
    for pod in pods:
        wanted = sum(requested_devices(pod).values())
        gone = {device_of(share) for share in recorded_gpus(pod)} - there
        if gone or len(given[pod_name(pod)]) < wanted:
            yield pod
