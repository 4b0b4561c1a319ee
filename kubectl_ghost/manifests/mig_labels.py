"""Node labels of split GPUs: NVIDIA's feature discovery and MIG manager.

Source: k8s-device-plugin 1b826ac internal/lm, and what its own binary printed for an H100 node; figures of a profile
that no source gives are left out.
"""

from __future__ import annotations

from collections import Counter

from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.devices import is_split, single_profile, table_of
from kubectl_ghost.domain.hardware import MigStrategy, NodeHardware
from kubectl_ghost.domain.keys import MIG_CONFIG_LABEL, MIG_CONFIG_STATE_LABEL
from kubectl_ghost.domain.mig import MigProfile

_STRATEGY = "nvidia.com/mig.strategy"


def mig_labels(hardware: NodeHardware) -> dict[str, str]:
    """What splitting adds to a node's labels, or changes in them."""
    labels: dict[str, str] = {}
    if hardware.mig_config is not None:
        labels = {MIG_CONFIG_LABEL: hardware.mig_config.name, MIG_CONFIG_STATE_LABEL: hardware.mig_config.state}
    strategy = hardware.settings.mig_strategy
    split = [index for index, _ in hardware.gpus if is_split(hardware, index)]
    if len(split) == hardware.settings.gpus:
        # Of GPUs in MIG mode feature discovery says that none is shared, by no replica at all.
        labels["nvidia.com/gpu.replicas"] = "0"
    if not model(hardware.settings.model).mig_capable or strategy is MigStrategy.NONE:
        return labels
    if strategy is MigStrategy.SINGLE:
        return {**labels, _STRATEGY: strategy.value, **(_single(hardware) if split else {})}
    return {**labels, _STRATEGY: strategy.value, **_mixed(hardware, split)} if split else labels


def _single(hardware: NodeHardware) -> dict[str, str]:
    """Instances in the place of GPUs; a layout that is not one profile on every GPU is marked invalid."""
    board, profile_name = model(hardware.settings.model), single_profile(hardware)
    if not profile_name:
        return {
            "nvidia.com/gpu.count": "0",
            "nvidia.com/gpu.memory": "0",
            "nvidia.com/gpu.product": f"{board.gfd_product}-MIG-INVALID",
            "nvidia.com/gpu.replicas": "0",
            "nvidia.com/gpu.sharing-strategy": "",
        }
    profile = table_of(board.key).profile(profile_name)
    count = sum(len(state.mig or ()) for _, state in hardware.gpus)
    labels = _profile_labels("nvidia.com/gpu", board.gfd_product, profile, count)
    if profile.memory_mib is None:
        # Not the whole GPU's figure, which feature discovery would have replaced.
        labels["nvidia.com/gpu.memory"] = "0"
    return labels


def _mixed(hardware: NodeHardware, split: list[int]) -> dict[str, str]:
    board = model(hardware.settings.model)
    labels: dict[str, str] = {}
    counts = Counter(instance.profile for index in split for instance in hardware.gpu(index).mig or ())
    for name, count in sorted(counts.items()):
        profile = table_of(board.key).profile(name)
        labels |= _profile_labels(profile.resource, board.gfd_product, profile, count)
    return labels


def _profile_labels(prefix: str, product: str, profile: MigProfile, count: int) -> dict[str, str]:
    figures = {
        "memory": profile.memory_mib,
        "multiprocessors": profile.multiprocessors,
        "slices.gi": profile.compute_slices,
        "slices.ci": profile.compute_slices,
        "engines.copy": profile.copy_engines,
        "engines.decoder": profile.decoders,
        "engines.encoder": profile.encoders,
        "engines.jpeg": profile.jpeg_engines,
        "engines.ofa": profile.ofa_engines,
    }
    return {
        f"{prefix}.count": str(count),
        f"{prefix}.product": f"{product}-MIG-{profile.resource.removeprefix('nvidia.com/mig-')}",
        f"{prefix}.replicas": "1",
        f"{prefix}.sharing-strategy": "none",
        **{f"{prefix}.{name}": str(figure) for name, figure in figures.items() if figure is not None},
    }
