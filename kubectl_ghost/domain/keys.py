"""Every label, annotation and taint key and every resource name that the tool reads or writes, one place each."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]
"""A Kubernetes object, or a part of one, as decoded JSON."""

DOMAIN: Final = "kubectl-ghost.dev"
HARDWARE_ANNOTATION: Final = "kubectl-ghost.dev/hardware"
"""The declared hardware of a node, compact JSON: the state that everything else is derived from."""
POOL_LABEL: Final = "kubectl-ghost.dev/pool"
TEMPLATE_LABEL: Final = "kubectl-ghost.dev/template"
"""On an adopted node, in the place of the pool label: the pool whose settings its GPUs have."""
ADOPTED_ANNOTATION: Final = "kubectl-ghost.dev/adopted"
"""On an adopted node: what it had before of everything that was set on it, compact JSON."""
GPUS_ANNOTATION: Final = "kubectl-ghost.dev/gpus"
"""On a pod served by the device-plugin path: the GPUs recorded for it, comma separated (`gpu-0,gpu-3`)."""
NODE_DOWN_ANNOTATION: Final = "kubectl-ghost.dev/node-down"
"""On a node: it goes NotReady and stays so until the annotation is gone; its value is the condition's message."""
NODE_UNREACHABLE_ANNOTATION: Final = "kubectl-ghost.dev/node-unreachable"
"""On a node: its Ready condition is Unknown and stays so until the annotation is gone."""
TIMED_LABEL: Final = "kubectl-ghost.dev/timed"
"""On a node on which something ends by itself: a fault with a limit, or a reboot."""
REBOOT_ANNOTATION: Final = "kubectl-ghost.dev/reboot"
"""On a node: whoever sets it, to any value, asks for a reboot; each new value asks once."""
OCCUPIED_TAINT: Final = "kubectl-ghost.dev/occupied"
"""Taint of a device that is declared busy before any workload exists."""
DURATION_ANNOTATION: Final = "kubectl-ghost.dev/duration"
"""On a Job's pod: how long it runs before it succeeds, in Go's notation; at once without it."""
RACK_LABEL: Final = "kubectl-ghost.dev/rack"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "kubectl-ghost"

KWOK_NODE_KEY: Final = "kwok.x-k8s.io/node"
"""kwok's annotation on the nodes it plays, and the key of the taint that keeps plain pods away from them."""
KWOK_NODE_VALUE: Final = "fake"

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
ARCH_LABEL: Final = "kubernetes.io/arch"
OS_LABEL: Final = "kubernetes.io/os"

FILLER_NAMESPACE: Final = "kubectl-ghost-occupancy"
"""Where the pods live that keep GPUs busy (`occupy --with pods`)."""

GPU_RESOURCE: Final = "nvidia.com/gpu"
GPU_DRIVER: Final = "gpu.nvidia.com"
"""DRA driver name, attribute domain and DeviceClass name of NVIDIA's driver for whole GPUs."""
SHARED_GPU_RESOURCE: Final = "nvidia.com/gpu.shared"
MIG_CONFIG_LABEL: Final = "nvidia.com/mig.config"
"""The layout that NVIDIA's MIG manager is asked for: a user or controller may set it, too."""
MIG_CONFIG_STATE_LABEL: Final = "nvidia.com/mig.config.state"
GPU_DEVICE_CLASS: Final = "gpu.nvidia.com"
MIG_DEVICE_CLASS: Final = "mig.nvidia.com"
