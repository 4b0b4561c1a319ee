"""Drives kwokctl: its configuration, its environment, its calls. What a cluster is made of is kwokctl's business."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubectl_ghost.domain.keys import KWOK_NODE_KEY, KWOK_NODE_VALUE
from kubectl_ghost.engine.binaries import BinarySet
from kubectl_ghost.engine.folders import ClusterFolder
from kubectl_ghost.engine.progress import Deadline
from kubectl_ghost.engine.record import BINARY_RUNTIME, Record, Settings

SERVICE_RANGE = "10.96.0.0/16"
FAKE_POD_RANGE = "10.128.0.1/9"
"""Apart from the services': by default both are 10.0.0.0/24, and a fake pod can get the API server's own address."""

_BINARY_VARIABLES = {
    "KWOK_KUBE_APISERVER_BINARY": "kube-apiserver",
    "KWOK_KUBE_CONTROLLER_MANAGER_BINARY": "kube-controller-manager",
    "KWOK_KUBE_SCHEDULER_BINARY": "kube-scheduler",
    "KWOK_ETCD_BINARY": "etcd",
    "KWOK_ETCDCTL_BINARY": "etcdctl",
    # Not KWOK_KWOK_CONTROLLER_BINARY: given that, kwokctl 0.8 looks for kwok on the internet.
    "KWOK_CONTROLLER_BINARY": "kwok",
}
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Tools:
    """The two programs the engine itself calls, and the set they come from where the runtime needs a whole one."""

    kwokctl: str
    kubectl: str
    binaries: BinarySet | None

    @classmethod
    def of(cls, binaries: BinarySet) -> Tools:
        """The tools of a set."""
        return cls(binaries["kwokctl"], binaries["kubectl"], binaries)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster in the hand of a command: where it lies, what it is, what to drive it with."""

    folder: ClusterFolder
    record: Record
    tools: Tools

    @property
    def runs_here(self) -> bool:
        """Whether its components are processes of this machine, not containers."""
        return self.record.settings.runtime == BINARY_RUNTIME


def configuration(settings: Settings, ports: dict[str, int], audit_policy: Path | None) -> str:
    """The KwokctlConfiguration of a cluster, as YAML."""
    options: dict[str, Any] = {"runtime": settings.runtime, "enableCRDs": ["Stage"]}
    if settings.runtime == BINARY_RUNTIME:
        options |= {"bindAddress": "127.0.0.1", **ports}
    if settings.feature_gates:
        options["kubeFeatureGates"] = settings.feature_gates
    if settings.disable_qps_limits:
        options["disableQPSLimits"] = True
    if audit_policy is not None:
        options["kubeAuditPolicy"] = str(audit_policy)
    document = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokctlConfiguration",
        "options": options,
        "componentsPatches": _patches(),
    }
    return yaml.safe_dump(document, sort_keys=False)


def _patches() -> list[dict[str, Any]]:
    """Arguments of components. Not by --extra-args: naming one component twice there makes kwokctl 0.8 panic."""
    return [
        {
            # Only nodes that are marked, so that a real node can join the same cluster.
            "name": "kwok-controller",
            "extraArgs": [
                {"key": "manage-all-nodes", "value": "false", "override": True},
                {"key": "manage-nodes-with-annotation-selector", "value": f"{KWOK_NODE_KEY}={KWOK_NODE_VALUE}"},
                # Here and not in a KwokConfiguration: a partial one leaves kwok without parallelism, nodes Unknown.
                {"key": "cidr", "value": FAKE_POD_RANGE},
            ],
        },
        {"name": "kube-apiserver", "extraArgs": [{"key": "service-cluster-ip-range", "value": SERVICE_RANGE}]},
        # There is one of each: an election would only make one that is started again wait for the lease of its past.
        *(
            {"name": name, "extraArgs": [{"key": "leader-elect", "value": "false"}]}
            for name in ("kube-controller-manager", "kube-scheduler")
        ),
    ]


def environment(cluster: Cluster) -> dict[str, str]:
    """The environment for kwokctl and kubectl: the user's without their own kwok settings, kept to our folder."""
    folder, tools = cluster.folder, cluster.tools
    result = {name: value for name, value in os.environ.items() if not name.startswith("KWOK_")}
    result |= {
        "KWOK_WORKDIR": str(folder.kwok_workdir),
        "KWOK_KUBE_VERSION": f"v{cluster.record.kubernetes}",
        "KWOK_KUBECTL_BINARY": tools.kubectl,
        "KUBECONFIG": str(folder.kubeconfig),
        "KUBECACHEDIR": str(folder.root / "cache"),
        # kwokctl takes a kubectl on PATH before the one that it is told.
        "PATH": os.pathsep.join(filter(None, [str(Path(tools.kubectl).parent), os.environ.get("PATH")])),
    }
    if tools.binaries is not None:
        result |= {variable: tools.binaries[name] for variable, name in _BINARY_VARIABLES.items()}
    return result


def run(
    cluster: Cluster, arguments: list[str], deadline: Deadline, watch: Callable[[], None] = lambda: None
) -> int | None:
    """Run kwokctl, its words going to the cluster's kwokctl.log.

    Args:
        cluster: the one to act on.
        arguments: verb and flags; the cluster's name is added.
        deadline: when kwokctl is given up.
        watch: called while it runs; what it raises ends kwokctl and goes on to the caller.

    Returns:
        kwokctl's exit code, or nothing if the time was up first.
    """
    folder = cluster.folder
    with folder.kwokctl_log.open("wb") as log:
        process = subprocess.Popen(
            # Under a name of the cluster's own, by which `processes` knows a kwokctl that has outlived us.
            [str(folder.kwokctl), "--name", folder.name, *arguments],
            executable=cluster.tools.kwokctl,
            env=environment(cluster),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            while process.poll() is None:
                watch()
                if deadline.passed:
                    return None
                time.sleep(_POLL_SECONDS)
        finally:
            process.kill()
            process.wait()
    return process.returncode


def kubectl(cluster: Cluster, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run kubectl against the cluster; the caller looks at the exit code."""
    return subprocess.run(
        # Named outright: without the file in KUBECONFIG kubectl would go to localhost:8080, whoever listens there.
        [cluster.tools.kubectl, f"--kubeconfig={cluster.folder.kubeconfig}", "--request-timeout=10s", *arguments],
        env=environment(cluster),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
