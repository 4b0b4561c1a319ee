"""The control plane that the node joins: what `kubectl ghost cluster up` makes, and what a real kubelet asks beyond."""

from __future__ import annotations

import datetime
from pathlib import Path

import yaml

from kubectl_ghost.engine import down as engine_down
from kubectl_ghost.engine import kwokctl, record, start
from kubectl_ghost.engine.binaries import BinarySet
from kubectl_ghost.engine.folders import ClusterFolder, Folders
from kubectl_ghost.engine.kwokctl import Cluster, Tools
from kubectl_ghost.engine.ports import choose_ports
from kubectl_ghost.engine.progress import Deadline, Progress
from kubectl_ghost.engine.record import Record, Settings, State
from tests.realnode.harness.places import API_SERVICE_ADDRESS, CLUSTER_NAME, NODE_ADDRESS, SERVICE_RANGE

_TIMEOUT_SECONDS = 120.0


def create(binaries: BinarySet, folders: Folders, audit_policy: str, progress: Progress) -> Cluster:
    """Bring a control plane up that listens to the node and its pods, and knows how to reach the node."""
    folder = folders.cluster(CLUSTER_NAME)
    made = Record(
        settings=Settings(version=binaries.versions.minor, audit_policy=audit_policy),
        state=State.CREATED,
        kubernetes=binaries.versions.kubernetes,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        ports=choose_ports([]),
        bin_dir=str(binaries.folder),
    )
    # Before there is anything to take down: `down` goes by the record.
    record.save(folder, made)
    folder.audit_policy.write_text(audit_policy, encoding="utf-8")
    cluster = Cluster(folder, made, Tools.of(binaries))
    folder.kwokctl_config.write_text(_configuration(cluster), encoding="utf-8")
    deadline = Deadline(_TIMEOUT_SECONDS)
    arguments = ["--config", str(folder.kwokctl_config), "--timeout", f"{_TIMEOUT_SECONDS:.0f}s"]
    start.create(cluster, arguments, deadline, progress)
    return cluster


def remove(folders: Folders, progress: Progress) -> None:
    """End it and remove all of it, if there is one."""
    engine_down.down(CLUSTER_NAME, folders, progress)


def pki(folder: ClusterFolder) -> Path:
    """Where kwokctl keeps the certificate authority and the administrator's certificate."""
    return folder.components / "pki"


def _configuration(cluster: Cluster) -> str:
    """The engine's own configuration, changed in what a node on another address needs."""
    document = yaml.safe_load(
        kwokctl.configuration(cluster.record.settings, cluster.record.ports, cluster.folder.audit_policy)
    )
    # Else clients in pods refuse its certificate.
    document["options"]["kubeApiserverCertSANs"] = [API_SERVICE_ADDRESS, NODE_ADDRESS]
    api_server = next(patch for patch in document["componentsPatches"] if patch["name"] == "kube-apiserver")
    api_server["extraArgs"] = [
        {"key": "bind-address", "value": "0.0.0.0", "override": True},
        {"key": "advertise-address", "value": NODE_ADDRESS},
        {"key": "service-cluster-ip-range", "value": SERVICE_RANGE},
        # Who it is to kubelet, for logs, exec and port-forward.
        {"key": "kubelet-client-certificate", "value": str(pki(cluster.folder) / "admin.crt")},
        {"key": "kubelet-client-key", "value": str(pki(cluster.folder) / "admin.key")},
        # Hostname too: kwok's nodes have nothing else, and logs of their pods go through them.
        {"key": "kubelet-preferred-address-types", "value": "InternalIP,Hostname"},
    ]
    return yaml.safe_dump(document, sort_keys=False)
