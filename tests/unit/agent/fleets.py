"""Nodes with two GPUs each and pods by `nvidia.com/gpu`, as an API server sends them."""

from __future__ import annotations

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.hardware import Advertise, NodeHardware, PoolSettings

_SETTINGS = PoolSettings("node", "h100-sxm5-80gb", 2, Advertise.BOTH, "32", "128Gi", 110)


def a_node(index):
    """Node number so many of the pool `node`."""
    hardware = NodeHardware(_SETTINGS, index)
    return {
        "metadata": {
            "name": hardware.node_name,
            "uid": f"uid-{hardware.node_name}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-06-01T00:00:00Z",
            "labels": {keys.MANAGED_BY_LABEL: keys.MANAGED_BY},
            "annotations": {
                keys.HARDWARE_ANNOTATION: encode(hardware),
                keys.KWOK_NODE_KEY: keys.KWOK_NODE_VALUE,
            },
        },
    }


def a_pod(name, node_name="node-0", **annotations):
    """A pod with one GPU of a node, on which nothing is recorded yet."""
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-06-01T05:00:00Z",
            "annotations": annotations,
        },
        "spec": {
            "nodeName": node_name,
            "containers": [{"name": "main", "resources": {"limits": {keys.GPU_RESOURCE: "1"}}}],
        },
        "status": {"phase": "Running", "startTime": "2026-06-01T06:00:00Z"},
    }


class Cluster:
    """A reader of what lies in it; its watches say nothing and end at once. `asked` are the requests that came."""

    def __init__(self, **collections):
        self.collections = {"nodes": [], "pods": [], "resourceclaims": [], **collections}
        self.asked = []

    def list(self, collection, keep):
        self.asked.append(("list", collection))
        return [keep(item) for item in self.collections[collection]], f"{collection}-version"

    def watch(self, collection, version, seconds):
        self.asked.append(("watch", collection, version))
        return iter(())

    def record(self, pod, node, devices):
        self.asked.append(("record", pod["metadata"]["name"], node["metadata"]["name"], devices))
