"""The node labels of NVIDIA's GPU feature discovery.

Keys and values follow what NVIDIA's own code prints for such a board (k8s-device-plugin 1b826ac, internal/lm), plus
those that its operator adds: `gfd.timestamp` (constant here, so that the same fleet has the same bytes), `gpu.machine`,
`vgpu.present` and `gpu.present`.
"""

from __future__ import annotations

from functools import cache

from kubectl_ghost.domain.catalogue import driver, model
from kubectl_ghost.domain.hardware import PoolSettings
from kubectl_ghost.domain.identity import fabric_uuid

_TIMESTAMP = "1767225600"
_MACHINE = "kubectl-ghost"
"""Stands where a real node has the DMI product name of its server."""


@cache
def gfd_labels(model_key: str, gpus: int) -> dict[str, str]:
    """The labels of a node whose GPUs are whole and not shared; all values as strings. Do not change the result."""
    board, stack = model(model_key), driver()
    major, minor, revision = stack.version.split(".")
    cuda_major, cuda_minor = stack.cuda.split(".")
    compute_major, compute_minor = board.compute_capability.split(".")
    return {
        "nvidia.com/cuda.driver-version.full": stack.version,
        "nvidia.com/cuda.driver-version.major": major,
        "nvidia.com/cuda.driver-version.minor": minor,
        "nvidia.com/cuda.driver-version.revision": revision,
        "nvidia.com/cuda.driver.major": major,
        "nvidia.com/cuda.driver.minor": minor,
        "nvidia.com/cuda.driver.rev": revision,
        "nvidia.com/cuda.runtime-version.full": stack.cuda,
        "nvidia.com/cuda.runtime-version.major": cuda_major,
        "nvidia.com/cuda.runtime-version.minor": cuda_minor,
        "nvidia.com/cuda.runtime.major": cuda_major,
        "nvidia.com/cuda.runtime.minor": cuda_minor,
        "nvidia.com/gfd.timestamp": _TIMESTAMP,
        "nvidia.com/gpu.compute.major": compute_major,
        "nvidia.com/gpu.compute.minor": compute_minor,
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.family": board.family,
        "nvidia.com/gpu.machine": _MACHINE,
        "nvidia.com/gpu.memory": str(board.memory_mib),
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": board.gfd_product,
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": str(board.mig_capable).lower(),
        "nvidia.com/mps.capable": "false",
        "nvidia.com/vgpu.present": "false",
    }


def clique_label(settings: PoolSettings, rack: str | None) -> dict[str, str]:
    """`nvidia.com/gpu.clique` of boards on an NVLink fabric: the nodes of one rack, or of a pool without racks."""
    clique = model(settings.model).fabric_clique
    if clique is None:
        return {}
    domain = fabric_uuid(f"{settings.name}/{rack or ''}")
    return {"nvidia.com/gpu.clique": f"{domain}.{clique}"}
