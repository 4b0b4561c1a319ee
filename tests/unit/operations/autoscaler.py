"""Nodes as an autoscaler makes them, and the ways to have them adopted."""

from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.faults import Fault, Reactor
from kubectl_ghost.domain.hardware import GpuState
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.operations.adoption import Template
from kubectl_ghost.operations.reconcile import update_node
from kubectl_ghost.operations.sync import sync
from tests.unit.operations import fleet
from tests.unit.operations.fleet import add_pool, state
from tests.unit.operations.memory import Memory, Store

LABEL = {"autoscaler": "x"}
TEMPLATE = Template("gpu", "autoscaler=x")
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def worker(name, *, labels=None, annotations=None, **parts):
    """A node as an autoscaler makes it, after kwok has initialised it."""
    return {
        "metadata": {
            "name": name,
            "labels": {**LABEL, **(labels or {})},
            "annotations": {**fleet.FAKE, **(annotations or {})},
        },
        "spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]},
        "status": {"capacity": ROOM, "allocatable": ROOM, "conditions": [{"type": "Ready", "status": "True"}]},
        **parts,
    }


def rich(name="worker-b"):
    """One that has a little of everything that the tool sets."""
    return worker(
        name,
        labels={
            "nvidia.com/gpu.product": "theirs",
            "nvidia.com/mig-1g.10gb.count": "theirs",
            keys.MANAGED_BY_LABEL: "autoscaler",
        },
        annotations={keys.NODE_DOWN_ANNOTATION: "theirs", "a": "b"},
        spec={"unschedulable": True},
        status={
            "capacity": {**ROOM, "nvidia.com/gpu": "1", "nvidia.com/odd": "2"},
            "allocatable": {**ROOM, "nvidia.com/odd": "1"},
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "AcceleratedHardwareReady", "status": "True", "reason": "theirs"},
            ],
        },
    )


def cluster(*nodes, count=2, **request):
    """Pool gpu, and nodes of others: a plain one and a richer one that match, and those that do not."""
    store = Store()
    add_pool(Memory(store), "gpu", count, **{"gpus": 2, **request})
    for item in nodes or (worker("worker-0"), rich(), worker("other", labels={"autoscaler": "y"})):
        store.put(NODES, item)
    store.put(NODES, fleet.node("real", labels=LABEL, capacity=ROOM))
    return store


def adopt(writer, warnings=None):
    """Sync with the template, to its end."""
    return list(sync(writer, [] if warnings is None else warnings, template=TEMPLATE))


def adopted_cluster(*nodes, **request):
    store = cluster(*nodes, **request)
    adopt(Memory(store))
    return store


def live(store, name="worker-0"):
    return store.one(NODES, name)


def change(store, name, function):
    """What a command declares on one node."""
    update_node(Memory(store), live(store, name), function)


def theirs(store):
    """The nodes of others, without what the server fills in."""
    names = {"worker-0", "worker-b", "other", "real"}
    return {key: item for key, item in state(store).items() if key[0] == "Node" and key[2] in names}


def broken(store):
    """Faults that cordon, set conditions and labels, a split GPU, and a node that is down."""
    faults = (Fault("xid", 79, (Reactor.EKS, Reactor.NVSENTINEL, Reactor.NPD, Reactor.DEVICE_PLUGIN)),)
    for name in ("worker-0", "worker-b"):
        change(store, name, lambda declared: declared.with_gpu(0, GpuState(faults=faults)))
        change(store, name, lambda declared: declared.with_gpu(1, GpuState(mig=(MigInstance("1g.10gb", 0),))))
