"""Objects as an API server sends them, and the agent's own parts between them and the text of a scrape."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from ghost_agent.fleet import CLAIMS, NODES, PODS, Fleet
from ghost_agent.options import agent_options
from ghost_agent.snapshot import Snapshot
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import Advertise, GpuState, NodeHardware, PoolSettings
from kubectl_ghost.domain.mig import MigInstance

BEGINNING = "2026-06-01T00:00:00Z"
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()
"""When tests look, unless they say otherwise: half a day after the nodes were made."""


def hardware(gpus=2, *, model="h100-sxm5-80gb", pool="node", index=0, advertise=Advertise.BOTH, states=None, **more):
    """A node's declaration; `states` are those of GPUs by their index, what is left over goes to the settings."""
    own = {name: more.pop(name) for name in ("faults", "reboot", "adopted") if name in more}
    settings = PoolSettings(pool, model, gpus, advertise, "32", "128Gi", 110, **more)
    return NodeHardware(settings, index, gpus=tuple(sorted((states or {}).items())), **own)


def split(*layout, **more):
    """A GPU in MIG mode with these instances, each `1g.10gb:0`."""
    instances = tuple(
        MigInstance(profile, int(start)) for profile, _, start in (part.partition(":") for part in layout)
    )
    return GpuState(mig=instances, **more)


def broken(kind="xid", code=None, *, since="2026-06-01T11:00:00Z", **more):
    """A GPU with one fault, XID 79 unless said otherwise."""
    return GpuState(faults=(Fault(kind, 79 if kind == "xid" and code is None else code, since=since),), **more)


def node(declared, *, created=BEGINNING, ours=True, simulated=True, uid=None):
    """A node with a declaration."""
    name = declared.node_name
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": "1",
            "creationTimestamp": created,
            "labels": {keys.HOSTNAME_LABEL: name, **({keys.MANAGED_BY_LABEL: keys.MANAGED_BY} if ours else {})},
            "annotations": {
                keys.HARDWARE_ANNOTATION: encode(declared),
                **({keys.KWOK_NODE_KEY: keys.KWOK_NODE_VALUE} if simulated else {}),
            },
        },
        "spec": {"providerID": f"kwok://{name}"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def container(name="main", *claims, limits=None, **more):
    """A container that asks for resources, and names claims of its pod: `gpu`, or `gpu/request` for a part of one."""
    named = [dict(zip(("name", "request"), claim.split("/"), strict=False)) for claim in claims]
    resources = {"limits": {key: str(number) for key, number in (limits or {}).items()}}
    return {"name": name, "image": "i", "resources": {**resources, **({"claims": named} if named else {})}, **more}


def pod(name, *containers, on="node-0", namespace="default", gpus=0, recorded=None, phase="Running", **more):
    """A pod on a node; `claims` says which ResourceClaim each of its entries is, the rest goes to the spec."""
    annotations = {**more.pop("annotations", {}), **({keys.GPUS_ANNOTATION: recorded} if recorded else {})}
    status = {"phase": phase, "startTime": more.pop("started", "2026-06-01T06:00:00Z"), **more.pop("status", {})}
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": more.pop("uid", f"uid-{namespace}-{name}"),
        "resourceVersion": "1",
        "creationTimestamp": more.pop("created", "2026-06-01T05:00:00Z"),
        "labels": more.pop("labels", {"app": name}),
        "annotations": annotations,
    }
    entries = [{"name": entry, "resourceClaimName": claim} for entry, claim in more.pop("claims", {}).items()]
    spec = {
        "containers": list(containers) or [container(limits={keys.GPU_RESOURCE: gpus} if gpus else None)],
        **({"nodeName": on} if on else {}),
        **({"resourceClaims": entries} if entries else {}),
        **more,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def claim(name, devices, *pods, on="node-0", namespace="default", request="r0", admin=False, driver=keys.GPU_DRIVER):
    """A ResourceClaim that is allocated and reserved for pods; a device is `gpu-0`, or `request=gpu-0`."""
    results = []
    for text in devices:
        own, _, device = text.rpartition("=")
        result = {"request": own or request, "driver": driver, "pool": on, "device": device}
        results.append({**result, **({"adminAccess": True} if admin else {})})
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {"devices": {"requests": [{"name": request}]}},
        "status": {
            "allocation": {"devices": {"results": results}, "nodeSelector": {}},
            "reservedFor": [{"resource": "pods", "name": item, "uid": f"uid-{namespace}-{item}"} for item in pods],
        },
    }


def by_claim(name, *devices, on="node-0", **more):
    """A pod with a claim of its own, both."""
    entry = {"claims": {"gpu": f"{name}-gpu"}}
    holder = pod(name, container("main", "gpu"), on=on, **entry, **more)
    return holder, claim(f"{name}-gpu", devices, name, on=on, namespace=holder["metadata"]["namespace"])


_COLLECTIONS = {"Node": NODES, "Pod": PODS, "ResourceClaim": CLAIMS}


def collection_of(item):
    """The collection that an object belongs to."""
    return _COLLECTIONS[item["kind"]]


@dataclass
class Shown:
    """An agent without watches and sockets: what is put in, and what a scrape would get."""

    fleet: Fleet
    snapshot: Snapshot
    problems: list[str]

    def put(self, *items):
        """Objects as they are now."""
        for item in items:
            collection = collection_of(item)
            self.fleet.put(collection, self.fleet.keep(collection, item))

    def remove(self, *items):
        """Objects that are gone."""
        for item in items:
            self.fleet.remove(collection_of(item), item)

    def text(self, moment=NOON, node_name=None):
        """What a scrape gets at a moment."""
        return "".join(self.snapshot.text(node_name, moment))


def agent(*items, **options):
    """An agent that knows these objects."""
    asked = agent_options(**options)
    problems: list[str] = []
    fleet = Fleet(asked.shard, pod_labels="pod-labels" in asked.compatibility)
    shown = Shown(fleet, Snapshot(fleet, asked, problem=problems.append), problems)
    shown.put(*items)
    return shown


def scrape(*items, moment=NOON, node_name=None, **options):
    """What a scrape of a new agent that knows these objects gets."""
    return agent(*items, **options).text(moment, node_name)
