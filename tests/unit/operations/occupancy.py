"""occupy and release as commands call them, and what a fleet looks like between them."""

from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_CLAIMS
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.hardware import OccupancyKind
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.occupy import OccupyRequest, apply_occupy, plan_occupy
from kubectl_ghost.operations.release import apply_release, plan_release

POOL = Selection(pool="node")
PODS_KIND = OccupancyKind.PODS
SPACE = keys.FILLER_NAMESPACE


def occupy(writer, selection=POOL, **request):
    """Run occupy to its end; returns the changes."""
    return list(apply_occupy(writer, plan_occupy(writer, OccupyRequest(selection, **request))))


def release(writer, selection=POOL):
    """Run release to its end; returns the changes."""
    return list(apply_release(writer, plan_release(writer, selection)))


def fillers(store):
    """The names of the pods in the fillers' namespace."""
    return [item["metadata"]["name"] for item in store.all(PODS) if item["metadata"]["namespace"] == SPACE]


def filler_claims(store):
    """The names of the claims there."""
    return [item["metadata"]["name"] for item in store.all(RESOURCE_CLAIMS) if item["metadata"]["namespace"] == SPACE]


def declared_fillers(store):
    """The names of the fillers that whole GPUs ask for."""
    return [
        f"{node['metadata']['name']}-gpu-{index}"
        for node in store.all(NODES)
        for index, gpu in hardware_of(node).gpus
        if gpu.occupancy and gpu.occupancy.kind is PODS_KIND
    ]


def leftovers(store):
    """What is not a node, slice or class of the fleet, nor a pod of somebody else."""
    kinds = ("Namespace", "PriorityClass")
    return [key for key in store.objects if key[0] in kinds or key[1] == SPACE]
