"""What the fleet tests ask of a cluster, in words short enough to read in a test."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.e2e.support import E2ECluster, eventually

Json = dict[str, Any]
_KINDS = "nodes,resourceslices,deviceclasses"
_LAST_LABEL = "beta.kubernetes.io/os"
_LAST_ANNOTATION = "node.alpha.kubernetes.io/ttl"


def objects(cluster: E2ECluster, kind: str, *flags: str) -> list[Json]:
    """Every object of a kind."""
    items: list[Json] = json.loads(cluster.kubectl("get", kind, "-o", "json", *flags).stdout)["items"]
    return items


def versions(cluster: E2ECluster) -> dict[str, str]:
    """The resourceVersion of everything that the tool writes, by kind and name."""
    return {
        f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
        for item in objects(cluster, _KINDS)
    }


def settled(cluster: E2ECluster) -> None:
    """Wait until kwok and the node controllers have written what they write to new nodes."""

    def quiet() -> bool:
        for node in objects(cluster, "nodes"):
            conditions = {item["type"]: item["status"] for item in node["status"].get("conditions", [])}
            keys = {taint["key"] for taint in node["spec"].get("taints", [])}
            if conditions.get("Ready") != "True" or any(key.startswith("node.kubernetes.io/") for key in keys):
                return False
            # The last two writes of the node controllers: seen in the audit log, in either order.
            metadata = node["metadata"]
            if _LAST_LABEL not in metadata["labels"] or _LAST_ANNOTATION not in metadata["annotations"]:
                return False
        before = versions(cluster)
        return before == versions(cluster)

    eventually(quiet, 60)


def audit_mark(cluster: E2ECluster) -> int:
    """Where the audit log ends now."""
    return len((cluster.logs_dir / "audit.log").read_text().splitlines())


def tool_writes(cluster: E2ECluster, since: int) -> list[Json]:
    """The audit events of everything that this tool asked the API server to write since a mark."""
    lines = (cluster.logs_dir / "audit.log").read_text().splitlines()[since:]
    return [
        event
        for event in map(json.loads, lines)
        if event["stage"] == "ResponseComplete"
        and event["userAgent"].startswith("kubectl-ghost/")
        and event["verb"] not in ("get", "list", "watch")
    ]


def apply(cluster: E2ECluster, *documents: Json) -> None:
    """Create or change objects with kubectl."""
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))


def claim_template(name: str, *requests: Json, constraints: list[Json] | None = None) -> Json:
    """A ResourceClaimTemplate; requests are DRA's `exactly` parts, of NVIDIA's DeviceClass by default."""
    named = [
        {"name": f"r{index}", "exactly": {"deviceClassName": "gpu.nvidia.com", **request}}
        for index, request in enumerate(requests)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": named, "constraints": constraints or []}}},
    }


def cel(expression: str) -> Json:
    """A request for one GPU that satisfies an expression."""
    return {"selectors": [{"cel": {"expression": expression}}]}


def pod(name: str, *, template: str | None = None, gpus: int = 0, **spec: Any) -> Json:
    """A pod that asks for a claim from a template, or for `nvidia.com/gpu`."""
    container: Json = {"name": "main", "image": "example.com/never-pulled", "resources": {}}
    if template:
        container["resources"]["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    if gpus:
        container["resources"]["limits"] = {"nvidia.com/gpu": gpus}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


def deployment(template: Json, replicas: int) -> Json:
    """A Deployment of one of `pod`'s pods."""
    metadata = dict(template["metadata"])
    name = metadata.pop("name")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": metadata, "spec": template["spec"]},
        },
    }


def phases(cluster: E2ECluster, app: str) -> list[str]:
    """Phases of an application's pods."""
    return sorted(item["status"]["phase"] for item in objects(cluster, "pods", "-l", f"app={app}"))


def running(cluster: E2ECluster, app: str, number: int = 1) -> None:
    """Wait until so many of its pods run."""
    eventually(lambda: phases(cluster, app).count("Running") == number, 60)


def unschedulable(cluster: E2ECluster, app: str) -> str:
    """Wait until the scheduler has refused a pod of it, and return the scheduler's message."""
    messages: list[str] = []

    def refused() -> bool:
        for item in objects(cluster, "pods", "-l", f"app={app}"):
            for condition in item["status"].get("conditions", []):
                if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
                    messages.append(condition["message"])
                    return True
        return False

    eventually(refused, 60)
    return messages[-1]


def devices_of(cluster: E2ECluster, app: str) -> list[tuple[str, str]]:
    """(node, device) of every GPU that the claims of these pods were given."""
    uids = {item["metadata"]["uid"] for item in objects(cluster, "pods", "-l", f"app={app}")}
    return sorted(
        (result["pool"], result["device"])
        for claim in objects(cluster, "resourceclaims")
        if {consumer["uid"] for consumer in claim.get("status", {}).get("reservedFor", [])} & uids
        for result in claim["status"]["allocation"]["devices"]["results"]
    )
