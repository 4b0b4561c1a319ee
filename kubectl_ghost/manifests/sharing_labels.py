"""Node labels of GPUs that several pods share, as NVIDIA's feature discovery sets them."""

from __future__ import annotations

from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.devices import is_split, single_profile
from kubectl_ghost.domain.hardware import MigStrategy, NodeHardware, SharingKind

_LONGEST_VALUE = 63


def sharing_labels(hardware: NodeHardware) -> dict[str, str]:
    """What sharing changes in a node's labels: replicas, strategy, and a product that ends in SHARED unless renamed.

    A product that would be too long for a label then stays as it is without sharing.
    """
    sharing = hardware.settings.sharing
    if sharing is None or not _anything_shared(hardware):
        return {}
    labels = {
        "nvidia.com/gpu.replicas": str(sharing.replicas),
        "nvidia.com/gpu.sharing-strategy": sharing.kind.value,
    }
    if sharing.kind is SharingKind.MPS:
        labels["nvidia.com/mps.capable"] = "true"
    product = f"{_product(hardware)}-SHARED"
    if not sharing.renamed and len(product) <= _LONGEST_VALUE:
        labels["nvidia.com/gpu.product"] = product
    return labels


def _anything_shared(hardware: NodeHardware) -> bool:
    """Feature discovery says nothing of sharing where nothing is there that counts as nvidia.com/gpu."""
    if hardware.settings.mig_strategy is MigStrategy.SINGLE:
        return single_profile(hardware) is not None
    return not all(is_split(hardware, index) for index in range(hardware.settings.gpus))


def _product(hardware: NodeHardware) -> str:
    product = model(hardware.settings.model).gfd_product
    profile = single_profile(hardware) if hardware.settings.mig_strategy is MigStrategy.SINGLE else ""
    return f"{product}-MIG-{profile.replace('+', '.')}" if profile else product
