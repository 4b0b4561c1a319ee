"""The metrics agent as objects: a pod on a stock Python image, its code in a ConfigMap, and the rights it needs.

The pod satisfies the Pod Security Standard "restricted", which its namespace enforces.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Final

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.agent_objects import AGENT_READS, READ_VERBS
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.real_nodes import CONTROL_PLANE_TAINT

DEFAULT_IMAGE: Final = "docker.io/library/python:3.13-alpine"
"""Docker's official image, the smallest there is of it: about 17 MB to pull."""
PORT: Final = 9400
"""dcgm-exporter's."""
BUNDLE: Final = "agent.pyz"
_COUNTERS = "counters.csv"
_FOLDER = "/agent"
_USER = 65532
"""Nobody's number, as distroless images use it for their user nonroot."""
_MOST_NODES = 50
"""Of those that the pod may go to: enough choice for the scheduler, and a pod that can still be read. CHOICE."""
_RESOURCES: Json = {
    # CHOICE: idle it takes next to nothing, a fleet of a thousand nodes with its pods less than 300 MB.
    "requests": {"cpu": "50m", "memory": "128Mi"},
    "limits": {"cpu": "2", "memory": "1Gi"},
}


@dataclass(frozen=True, slots=True)
class Bundle:
    """The agent's code.

    Attributes:
        content: a zip that Python runs.
        digest: of the files in it; the same code may be compressed to other bytes elsewhere.
    """

    content: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class AgentPod:
    """What the pod is asked to be.

    Attributes:
        arguments: of the agent's command line, without the port.
        counters: the text of a dcgm-exporter CSV file that it is given; "" for none.
        seconds: after which it ends by itself; None for never.
        read_only: whether it may not even record which GPUs pods have.
    """

    bundle: Bundle
    arguments: tuple[str, ...] = ()
    counters: str = ""
    image: str = DEFAULT_IMAGE
    seconds: int | None = None
    read_only: bool = False


def namespace() -> Json:
    """Where the agent lives, and what it and whoever gets in there may be at most."""
    body = _object("v1", "Namespace", {"name": keys.AGENT_NAMESPACE})
    body["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    return body


def service_account() -> Json:
    """Whom the agent asks the API server as. Only a pod that says so is given its token."""
    return _stamped(_object("v1", "ServiceAccount", _PLACE) | {"automountServiceAccountToken": False})


def cluster_role(*, read_only: bool) -> Json:
    """What the agent may do: look, and record on pods which GPUs they have."""
    rules = [
        {"apiGroups": [group], "resources": list(resources), "verbs": list(READ_VERBS)}
        for group, resources in AGENT_READS.items()
    ]
    if not read_only:
        rules.append({"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]})
    return _stamped(_object(_RBAC, "ClusterRole", {"name": keys.AGENT_NAME}) | {"rules": rules})


def cluster_role_binding() -> Json:
    """That the agent may do so, and nobody else."""
    parts = {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": keys.AGENT_NAME},
        "subjects": [{"kind": "ServiceAccount", **_PLACE}],
    }
    return _stamped(_object(_RBAC, "ClusterRoleBinding", {"name": keys.AGENT_NAME}) | parts)


def config_map(wanted: AgentPod) -> Json:
    """The agent's code, and the counters file if it has one."""
    body = _object("v1", "ConfigMap", _PLACE)
    if wanted.counters:
        body["data"] = {_COUNTERS: wanted.counters}
    code = base64.b64encode(wanted.bundle.content).decode("ascii")
    return _stamped(body, wanted.bundle.digest) | {"binaryData": {BUNDLE: code}}


def pod(wanted: AgentPod, nodes: list[str]) -> Json:
    """The agent's pod, on one of these nodes: a simulated one would only say that it runs it."""
    spec: Json = {
        "serviceAccountName": keys.AGENT_NAME,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 2,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [{"key": CONTROL_PLANE_TAINT, "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [_container(wanted)],
        "volumes": [{"name": "agent", "configMap": {"name": keys.AGENT_NAME}}],
    }
    if wanted.seconds is not None:
        spec["activeDeadlineSeconds"] = wanted.seconds
    body = _object("v1", "Pod", _PLACE)
    body["metadata"]["annotations"] = {
        # As dcgm-exporter's pods are found by a Prometheus that discovers pods by annotation.
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(PORT),
        "prometheus.io/path": "/metrics",
    }
    # Which nodes there are just now is not what was asked for.
    body = _stamped(body | {"spec": spec}, wanted.bundle.digest, wanted.counters)
    body["spec"]["affinity"] = _one_of(nodes[:_MOST_NODES])
    return body


def digest_of(body: Json) -> str:
    """What an object was made from: two of the same digest are the same."""
    return str((body["metadata"].get("annotations") or {}).get(keys.DIGEST_ANNOTATION, ""))


_RBAC = "rbac.authorization.k8s.io/v1"
_PLACE = {"name": keys.AGENT_NAME, "namespace": keys.AGENT_NAMESPACE}


def _object(api_version: str, kind: str, metadata: Json) -> Json:
    labels = {keys.MANAGED_BY_LABEL: keys.MANAGED_BY, "app.kubernetes.io/name": keys.AGENT_NAME}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**metadata, "labels": labels}}


def _stamped(body: Json, *more: str) -> Json:
    """The object with the digest of itself, and of what it refers to."""
    digest = hashlib.sha256(json.dumps([body, *more], sort_keys=True).encode()).hexdigest()[:16]
    metadata = body["metadata"]
    annotations = {**metadata.get("annotations", {}), keys.DIGEST_ANNOTATION: digest}
    return body | {"metadata": {**metadata, "annotations": annotations}}


def _container(wanted: AgentPod) -> Json:
    counters = ["--counters", f"{_FOLDER}/{_COUNTERS}"] if wanted.counters else []
    return {
        "name": "agent",
        "image": wanted.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", f"{_FOLDER}/{BUNDLE}"],
        "args": ["--port", str(PORT), *counters, *wanted.arguments],
        # Nothing can be written beside the code, and what is printed is to be seen at once.
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}, {"name": "PYTHONUNBUFFERED", "value": "1"}],
        "ports": [{"name": "metrics", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "metrics"}, "periodSeconds": 1},
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "metrics"},
            # A scrape of a large fleet may keep it busy for seconds.
            "timeoutSeconds": 10,
            "periodSeconds": 10,
        },
        "resources": _RESOURCES,
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "agent", "mountPath": _FOLDER, "readOnly": True}],
    }


def _one_of(nodes: list[str]) -> Json:
    """By name, one term a node, since a term takes a single one; labels say nothing sure about who is simulated."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in nodes]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
