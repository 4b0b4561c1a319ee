"""The operations as commands call them, the objects of other people, and what a fleet looks like in the end."""

from kubectl_ghost.cluster.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.hardware import Advertise
from kubectl_ghost.domain.pools import PoolRequest
from kubectl_ghost.operations.add_pool import apply_pool, plan_pool
from kubectl_ghost.operations.delete_pool import delete_pools, select_pools
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.scale_pool import plan_scale, scale
from kubectl_ghost.operations.sync import sync
from tests.unit.operations.memory import Memory, Store

MARKS = {keys.MANAGED_BY_LABEL: keys.MANAGED_BY}
FAKE = {keys.KWOK_NODE_KEY: keys.KWOK_NODE_VALUE}
BOTH, DRA, DEVICE_PLUGIN = Advertise.BOTH, Advertise.DRA, Advertise.DEVICE_PLUGIN


def add_pool(writer, name="node", count=None, *, force=False, allow_mixed=False, **request):
    """Run add-pool to its end; returns the plan's warnings."""
    plan = plan_pool(writer, name, count, PoolRequest(**request), allow_mixed=allow_mixed, force=force)
    for _ in apply_pool(writer, plan):
        pass
    return plan.warnings


def scale_pool(writer, name, size):
    """Run scale-pool to its end."""
    for _ in scale(writer, plan_scale(writer, name, size)):
        pass


def delete_pool(writer, *names):
    """Run delete-pool to its end, of all pools without a name; returns the warnings."""
    warnings = []
    what = select_pools(writer, names, warnings, everything=not names, ignore_missing=False)
    for _ in delete_pools(writer, what, warnings):
        pass
    return warnings


def run_sync(writer):
    """Run sync to its end; returns the changes."""
    return list(sync(writer, []))


def cluster(count=3, name="node", **request):
    """A store with one pool in it."""
    store = Store()
    add_pool(Memory(store), name, count, **request)
    return store


def node(name, *, annotations=None, labels=None, capacity=None):
    """A node of somebody else."""
    return {
        "metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}},
        "spec": {},
        "status": {"capacity": capacity or {}},
    }


def pod(name, node_name="", *, gpus=0, labels=None, owner=None, phase="Running", status=None, **spec):
    """A pod, bound to a node if one is named; its uid is `uid-<name>`."""
    limits = {keys.GPU_RESOURCE: str(gpus)} if gpus else {}
    owners = [{"kind": owner[0], "name": owner[1], "controller": True}] if owner else []
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels or {}, "ownerReferences": owners},
        "spec": {
            **({"nodeName": node_name} if node_name else {}),
            "containers": [{"name": "c", "resources": {"limits": limits}}],
            **spec,
        },
        "status": {"phase": phase, **(status or {})},
    }


def claim(name, node_name, devices, *pods):
    """A ResourceClaim that is allocated on a node and reserved for pods."""
    results = [{"driver": keys.GPU_DRIVER, "pool": node_name, "device": device} for device in devices]
    return {
        "metadata": {"name": name},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": item, "uid": f"uid-{item}"} for item in pods],
        },
    }


def holding(store, name, node_name, *devices):
    """Put a pod on a node that holds devices through a claim of its own."""
    uses = [{"name": "gpu", "resourceClaimName": f"claim-{name}"}]
    store.put(PODS, pod(name, node_name, resourceClaims=uses))
    store.put(RESOURCE_CLAIMS, claim(f"claim-{name}", node_name, devices, name))


def state(store):
    """Everything there is, without what differs from one creation to the next; owners by whether they live."""
    uids = {item["metadata"]["uid"] for item in store.all(NODES)}
    found = {}
    for key, item in sorted(store.objects.items()):
        metadata = {
            field: value
            for field, value in item["metadata"].items()
            if field not in ("uid", "resourceVersion", "creationTimestamp", "ownerReferences")
        }
        owners = [(owner["name"], owner.get("uid") in uids) for owner in item["metadata"].get("ownerReferences") or ()]
        found[key] = {**item, "metadata": metadata, "owners": owners}
    return found


def ours(store):
    """The names of what this tool manages."""
    return [
        f"{item['kind']}/{item['metadata']['name']}"
        for resource in (NODES, RESOURCE_SLICES, DEVICE_CLASSES)
        for item in store.all(resource)
        if keys.MANAGED_BY_LABEL in (item["metadata"].get("labels") or {})
    ]


def settings(store, name):
    """The declared settings of one node."""
    return hardware_of(store.one(NODES, name)).settings


def slices_on(store, node_name):
    """The slices that stand on a node."""
    return [item for item in store.all(RESOURCE_SLICES) if item["spec"].get("nodeName") == node_name]
