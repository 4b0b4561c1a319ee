"""A cluster whose history is made up step by step, and what an agent hears of it: late, and in an order of its own.

Each collection has a queue of events of its own, as each has a watch of its own; they are in order within a collection
and in any order between them.
"""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import replace

from ghost_agent.fleet import CLAIMS, COLLECTIONS, NODES, PODS, Fleet
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import (
    Advertise,
    GpuState,
    LastXid,
    MigMode,
    MigStrategy,
    NodeHardware,
    Occupancy,
    PoolSettings,
    Reboot,
    Sharing,
    SharingKind,
)
from kubectl_ghost.domain.mig import MigInstance
from tests.unit.agent.kube import node
from tests.unit.agent.oracle import View

MACHINES = {"n-2": 2, "n-10": 10, "n-02": None, "lone": None}
"""Names of nodes, with their index in the pool; None for nodes that somebody else made."""


def declared(name, machine):
    """The declaration that says what a machine is."""
    index = MACHINES[name]
    sharing = Sharing(SharingKind.TIME_SLICING, machine.replicas, machine.renamed) if machine.replicas > 1 else None
    settings = PoolSettings(
        "n",
        machine.model,
        len(machine.gpus),
        Advertise.BOTH if machine.counted else Advertise.DRA,
        "32",
        "128Gi",
        110,
        mig=MigMode.DYNAMIC if machine.dynamic else MigMode.STATIC,
        mig_strategy=MigStrategy(machine.strategy),
        sharing=sharing,
    )
    hardware = NodeHardware(
        settings,
        index or 0,
        adopted=name if index is None else "",
        reboot=None if machine.answers else Reboot("2026-06-01T11:00:00Z", "2026-06-01T23:00:00Z"),
    )
    for number, gpu in enumerate(machine.gpus):
        hardware = hardware.with_gpu(number, _state(gpu))
    return hardware


def _state(gpu):
    return GpuState(
        mig=None if gpu.layout is None else tuple(MigInstance(*place) for place in gpu.layout),
        occupancy=Occupancy() if gpu.occupied else None,
        faults=tuple(
            Fault(kind, code if kind == "xid" else None, since="2026-06-01T11:00:00Z") for kind, code in gpu.faults
        ),
        last_xid=None if gpu.last_xid is None else LastXid(gpu.last_xid, "2026-06-01T10:00:00Z"),
    )


class World:
    """The objects as they are, the events that are under way, and the view of who has heard so many of them."""

    def __init__(self):
        self.objects = {collection: {} for collection in COLLECTIONS}
        self.queues = {collection: deque() for collection in COLLECTIONS}
        self.heard = {collection: {} for collection in COLLECTIONS}
        self.machines = {}
        self.made = 0

    def write(self, collection, item):
        """An object is made, or as it is now."""
        self.made += 1
        item["metadata"]["resourceVersion"] = str(self.made)
        self.objects[collection][_key(item)] = item
        if not _hidden(collection, item):
            self.queues[collection].append(("MODIFIED", copy.deepcopy(item)))

    def delete(self, collection, key):
        """An object goes."""
        item = self.objects[collection].pop(key)
        self.queues[collection].append(("DELETED", copy.deepcopy(item)))

    def write_node(self, name, machine, *, ours=True, simulated=True, anew=False):
        """A node is made, or declared anew; `anew` for one that is another object of the same name."""
        before = self.objects[NODES].get(name)
        uid = before["metadata"]["uid"] if before and not anew else f"uid-{name}-{self.made}"
        item = node(declared(name, machine), uid=uid, ours=ours, simulated=simulated)
        self.write(NODES, item)
        self.machines[item["metadata"]["resourceVersion"]] = machine

    def hear(self, fleet: Fleet, collection):
        """One event arrives, if one is under way."""
        if not self.queues[collection]:
            return
        kind, item = self.queues[collection].popleft()
        if kind == "DELETED":
            self.heard[collection].pop(_key(item), None)
            fleet.remove(collection, item)
        else:
            self.heard[collection][_key(item)] = item
            fleet.put(collection, fleet.keep(collection, item))

    def list(self, fleet: Fleet, collection):
        """A watch is lost, and everything listed anew."""
        self.queues[collection].clear()
        present = {key: item for key, item in self.objects[collection].items() if not _hidden(collection, item)}
        self.heard[collection] = copy.deepcopy(present)
        fleet.replace(collection, [fleet.keep(collection, copy.deepcopy(item)) for _, item in sorted(present.items())])

    def tell(self, fleet: Fleet, chance):
        """A new agent lists what the one before it has heard of, in some order."""
        for collection in chance.sample(COLLECTIONS, len(COLLECTIONS)):
            present = chance.sample(list(self.heard[collection].values()), len(self.heard[collection]))
            fleet.replace(collection, [fleet.keep(collection, copy.deepcopy(item)) for item in present])

    def view(self):
        """What has been heard of, for the oracle."""
        machines = {
            name: self.machines[item["metadata"]["resourceVersion"]]
            for name, item in self.heard[NODES].items()
            if item["metadata"]["annotations"].get("kwok.x-k8s.io/node") == "fake"
            and item["metadata"]["labels"].get("app.kubernetes.io/managed-by") == "kubectl-ghost"
        }
        return View(machines, self.heard[PODS], self.heard[CLAIMS])


def _key(item):
    metadata = item["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}" if item["kind"] != "Node" else metadata["name"]


def _hidden(collection, item):
    """Pods that are nowhere are not asked for; of those that have ended a watch may still bring one."""
    return collection == PODS and not item["spec"].get("nodeName")


def without_workload(machine):
    """The same machine as new: nothing broken, nothing busy."""
    return replace(machine, answers=True, gpus=tuple(replace(gpu, faults=(), occupied=False) for gpu in machine.gpus))
