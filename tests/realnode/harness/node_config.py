"""What containerd, CNI and kubelet read."""

from __future__ import annotations

import json
import socket
import subprocess

import yaml

from kubectl_ghost.engine.kwokctl import Cluster
from tests.realnode.harness import packages
from tests.realnode.harness.control_plane import pki
from tests.realnode.harness.places import (
    BRIDGE,
    CNI_CONFIG,
    CONTAINERD_CONFIG,
    CONTAINERD_SOCKET,
    KUBELET_CONFIG,
    KUBELET_KUBECONFIG,
    LOGS,
    NODE_ADDRESS,
    NODE_NAME,
    PAUSE_IMAGE,
    POD_RANGE,
    ROOT,
)


def configure(cluster: Cluster) -> None:
    """Write all of it."""
    for path in (CONTAINERD_CONFIG, KUBELET_CONFIG, CNI_CONFIG / "net", LOGS / "pods"):
        path.parent.mkdir(parents=True, exist_ok=True)
    CONTAINERD_CONFIG.write_text(_containerd_config(), encoding="utf-8")
    (CNI_CONFIG / "10-ghost.conflist").write_text(json.dumps(_network()), encoding="utf-8")
    # No cluster DNS: a look-up is refused at once rather than sent into the world.
    (ROOT / "kubelet" / "resolv.conf").write_text("nameserver 127.0.0.1\n", encoding="utf-8")
    _sign_certificate(cluster)
    KUBELET_KUBECONFIG.write_text(yaml.safe_dump(_kubeconfig(cluster)), encoding="utf-8")
    KUBELET_CONFIG.write_text(yaml.safe_dump(_kubelet_config(cluster)), encoding="utf-8")


def _containerd_config() -> str:
    # restrict_oom_score_adj: containers may lack CAP_SYS_RESOURCE, and runc then fails to lower a pod's score.
    return f"""\
version = 2
root = "{ROOT}/containerd/root"
state = "{ROOT}/containerd/state"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{ROOT}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{packages.CNI_PLUGINS}"
    conf_dir = "{CNI_CONFIG}"
"""


def _network() -> dict[str, object]:
    ipam = {
        "type": "host-local",
        "dataDir": str(ROOT / "ipam"),
        "ranges": [[{"subnet": POD_RANGE, "gateway": NODE_ADDRESS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "hairpinMode": True, "ipam": ipam}
    return {"cniVersion": "1.0.0", "name": "ghost", "plugins": [bridge]}


def _kubelet_config(cluster: Cluster) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        # Since Kubernetes 1.35 kubelet refuses cgroup v1 by default.
        "failCgroupV1": False,
        # containerd 1.6 cannot tell its own.
        "cgroupDriver": "cgroupfs",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "address": NODE_ADDRESS,
        "port": _free_port(),
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki(cluster.folder) / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        # Both defaults need CAP_SYS_RESOURCE.
        "oomScoreAdj": 0,
        "maxOpenFiles": 20000,
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(LOGS / "pods"),
        "resolvConf": str(ROOT / "kubelet" / "resolv.conf"),
        # Images cannot be pulled again, and how full the machine's disk is, is no concern of tests.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "maxPods": 20,
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((NODE_ADDRESS, 0))
        port: int = probe.getsockname()[1]
        return port


def _sign_certificate(cluster: Cluster) -> None:
    """The node's own identity, so that the Node authorizer judges it as it does any kubelet."""
    folder, authority = KUBELET_KUBECONFIG.parent, pki(cluster.folder)
    subject = f"/O=system:nodes/CN=system:node:{NODE_NAME}"
    request = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", subject]
    request += ["-keyout", str(folder / "node.key"), "-out", str(folder / "node.csr")]
    sign = ["openssl", "x509", "-req", "-in", str(folder / "node.csr"), "-out", str(folder / "node.crt"), "-days", "30"]
    sign += ["-CA", str(authority / "ca.crt"), "-CAkey", str(authority / "ca.key"), "-CAcreateserial"]
    for command in (request, sign):
        subprocess.run(command, capture_output=True, check=True)


def _kubeconfig(cluster: Cluster) -> dict[str, object]:
    folder = KUBELET_KUBECONFIG.parent
    server = f"https://127.0.0.1:{cluster.record.ports['kubeApiserverPort']}"
    authority = str(pki(cluster.folder) / "ca.crt")
    user = {"client-certificate": str(folder / "node.crt"), "client-key": str(folder / "node.key")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "node",
        "contexts": [{"name": "node", "context": {"cluster": "cluster", "user": "node"}}],
        "clusters": [{"name": "cluster", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": "node", "user": user}],
    }
