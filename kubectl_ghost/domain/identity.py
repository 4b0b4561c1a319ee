"""Who each simulated GPU is: UUIDs and PCI addresses, functions of the node's name and the GPU's index alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from uuid import UUID, uuid5

from kubectl_ghost.domain.catalogue import GpuModel

NAMESPACE = uuid5(UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), "kubectl-ghost.dev")
"""Version-5 namespace of this project (its DNS name's): two fleets with the same names have the same UUIDs."""
_NAMESPACE_BYTES = NAMESPACE.bytes
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes builds generated name endings from: no vowels, nothing that looks like something else."""


@dataclass(frozen=True, slots=True)
class PciAddress:
    """PCI bus id (`0000:1a:00.0`) and the root complex it hangs on (`pci0000:00`)."""

    bus_id: str
    root: str


def gpu_name(index: int) -> str:
    """The device name that NVIDIA's DRA driver gives: `gpu-<minor>`."""
    return f"gpu-{index}"


def parent_gpu(device_name: str) -> str:
    """The name of the GPU that a device is part of, or is itself."""
    return device_name.partition("-mig-")[0]


def gpu_uuid(node_name: str, index: int) -> str:
    """A UUID in NVML's form, unique over all node names: version 5, of `<node>-<index>` in NAMESPACE."""
    return f"GPU-{name_uuid(f'{node_name}-{index}')}"


def name_uuid(name: str) -> str:
    """The version-5 UUID of a name in NAMESPACE.

    Made here rather than by the standard library's uuid5, which takes four times as long, and fleets are large.
    """
    digest = bytearray(hashlib.sha1(_NAMESPACE_BYTES + name.encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def fabric_uuid(domain_name: str) -> str:
    """Cluster UUID of an NVLink domain, from the name of the rack or pool that it spans."""
    return str(uuid5(NAMESPACE, f"fabric-{domain_name}"))


@cache
def pci_addresses(model: GpuModel, gpus: int) -> tuple[PciAddress, ...]:
    """Addresses of a node's GPUs: the board's own slots first; more GPUs than slots go to further PCI domains.

    The domains after the first are approximated: no board with that many GPUs is in the catalogue.
    """
    addresses = []
    for index in range(gpus):
        domain, position = divmod(index, len(model.slots))
        slot = model.slots[position]
        addresses.append(PciAddress(f"{domain:04x}:{slot.bus}:00.0", f"pci{domain:04x}:{slot.root_bus}"))
    return tuple(addresses)


def name_suffix(node_name: str) -> str:
    """Five characters in place of the random ending of a generated name: the same node always gets the same."""
    number = int.from_bytes(hashlib.sha256(node_name.encode()).digest()[:8], "big")
    suffix = ""
    for _ in range(5):
        number, position = divmod(number, len(_SUFFIX_ALPHABET))
        suffix += _SUFFIX_ALPHABET[position]
    return suffix
