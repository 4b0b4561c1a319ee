"""Names, addresses and folders of the real node."""

from __future__ import annotations

from pathlib import Path

NODE_NAME = "real-node"
CLUSTER_NAME = "realnode"

# 198.18.0.0/15 is set aside for tests of network devices (RFC 2544): nothing that the machine talks to lies there.
SERVICE_RANGE = "198.18.0.0/24"
API_SERVICE_ADDRESS = "198.18.0.1"
POD_RANGE = "198.19.0.0/24"
NODE_ADDRESS = "198.19.0.1"
"""The bridge's address: the node needs none of the machine's own, and nobody outside reaches it."""
BRIDGE = "ghost-node"

ROOT = Path("/var/lib/kubectl-ghost-realnode")
"""One place a machine, whoever runs it: so that what a killed run has left is found by the next."""
LOCK = Path("/run/lock/kubectl-ghost-realnode.lock")
LOGS = ROOT / "logs"
CONTAINERD_SOCKET = ROOT / "containerd" / "containerd.sock"
CONTAINERD_CONFIG = ROOT / "containerd" / "config.toml"
KUBELET_CONFIG = ROOT / "kubelet" / "config.yaml"
KUBELET_KUBECONFIG = ROOT / "kubelet" / "kubeconfig"
CNI_CONFIG = ROOT / "cni"

PAUSE_IMAGE = "kubectl-ghost.dev/pause:test"
