"""The labels of a series, in dcgm-exporter's order and spelling (NVIDIA/dcgm-exporter d5e5f51, render_metrics.go).

Everything between the braces but err_code and err_msg is the same for all series of a device, so it is written once
when something about the device changes, not at every scrape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kubectl_ghost.domain.attribution import Use
from kubectl_ghost.domain.keys import GPU_DRIVER, Json

_LABEL_NAME = re.compile(r"[^a-zA-Z0-9_]")
_OTHERS = frozenset(
    {
        *("gpu", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "err_code", "err_msg", "xid"),
        *("window_size_in_ms", "clock_event", "health_watch", "health_error_code", "peer_gpu", "link_status"),
    }
)
"""Labels that some series has whatever its pod. A pod's label of such a name is left out: Prometheus takes nothing of a
scrape in which a name stands twice."""


@dataclass(frozen=True, slots=True)
class Block:
    """The text between the braces of a device's series, cut where labels of single fields go.

    `head` ends with the host name, `labels` is the exporter's sorted map of labels, `front` and `back` are the sorted
    attributes before and after err_code; `plain` is all of it, for every field that has no labels of its own.
    """

    head: str
    labels: tuple[tuple[str, str], ...]
    front: str
    back: str
    plain: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Put it together once, not at every scrape."""
        object.__setattr__(self, "plain", self.text())

    def text(self, labels: Mapping[str, str] | None = None, error: tuple[int, str] | None = None) -> str:
        """With labels of a single field.

        Args:
            labels: further ones for the exporter's map of labels.
            error: err_code and err_msg.
        """
        merged = sorted({**dict(self.labels), **(labels or {})}.items())
        middle = "".join(f',{key}="{value}"' for key, value in merged)
        attributes = self.front
        if error is not None:
            attributes += f',err_code="{error[0]}",err_msg="{error[1]}"'
        return f"{{{self.head}{middle}{attributes}{self.back}}}"


@dataclass(frozen=True, slots=True)
class Spelling:
    """How labels are called: what --compat changes."""

    hostname: str = "Hostname"
    uuid: str = "UUID"
    pod: str = "pod"
    namespace: str = "namespace"
    container: str = "container"
    pod_labels: bool = False
    pod_uid: bool = False


def spelling(compatibility: frozenset[str]) -> Spelling:
    """The spelling that the words of --compat mean."""
    old = "old-namespace" in compatibility
    return Spelling(
        hostname="hostname" if "hostname" in compatibility else "Hostname",
        uuid="uuid" if old else "UUID",
        pod="pod_name" if old else "pod",
        namespace="pod_namespace" if old else "namespace",
        container="container_name" if old else "container",
        pod_labels="pod-labels" in compatibility,
        pod_uid="pod-uid" in compatibility,
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a GPU is: the first labels of its series; `instance` is a MIG instance's profile and number."""

    node: str
    index: int
    uuid: str
    bus_id: str
    model_name: str
    instance: tuple[str, int] | None = None


def head(identity: Identity, words: Spelling) -> str:
    """The labels up to the host name."""
    part = ""
    if identity.instance is not None:
        part = f',GPU_I_PROFILE="{identity.instance[0]}",GPU_I_ID="{identity.instance[1]}"'
    return (
        f'gpu="{identity.index}",{words.uuid}="{identity.uuid}",pci_bus_id="{identity.bus_id}",'
        f'device="nvidia{identity.index}",modelName="{identity.model_name}"{part},{words.hostname}="{identity.node}"'
    )


def free_block(identity: Identity, labels: Mapping[str, str], words: Spelling) -> Block:
    """Of a device that no pod has: it has no pod labels, not even empty ones."""
    return Block(head(identity, words), tuple(sorted(labels.items())), "", "")


def used_block(
    identity: Identity,
    labels: Mapping[str, str],
    words: Spelling,
    use: Use,
    pod: Json,
    mig: tuple[str, str] | None = None,
) -> Block:
    """Of a device that a container has.

    Args:
        pod: the container's pod.
        mig: profile and UUID of a claimed MIG device.
    """
    attributes = {words.pod: use.pod, words.namespace: use.namespace}
    if use.container:
        attributes[words.container] = use.container
    if use.replica:
        attributes["vgpu"] = use.replica
    if words.pod_uid:
        attributes["pod_uid"] = pod["metadata"]["uid"]
    if use.claim is not None:
        attributes |= {
            "dra_claim_name": use.claim.name,
            "dra_claim_namespace": use.claim.namespace,
            "dra_device_name": use.claim.device,
            "dra_driver_name": GPU_DRIVER,
            "dra_pool_name": use.claim.pool,
        }
        if mig is not None:
            attributes |= {"dra_mig_profile": mig[0], "dra_mig_device_uuid": mig[1]}
    every = dict(labels)
    if words.pod_labels:
        taken = {*_OTHERS, words.uuid, words.hostname, *labels, *attributes}
        every |= {name: value for name, value in _pod_labels(pod) if name not in taken}
    pairs = sorted(attributes.items())
    return Block(
        head(identity, words),
        tuple(sorted(every.items())),
        "".join(f',{key}="{value}"' for key, value in pairs if key < "err_code"),
        "".join(f',{key}="{value}"' for key, value in pairs if key > "err_code"),
    )


def _pod_labels(pod: Json) -> Iterator[tuple[str, str]]:
    """A pod's own labels, their names spelled as Prometheus takes them."""
    for key, value in sorted(pod["metadata"]["labels"].items()):
        name = _LABEL_NAME.sub("_", key)
        yield f"_{name}" if name[0].isdigit() else name, value
