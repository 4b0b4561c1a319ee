"""What can happen on a cluster and to an agent: each a step that chance fills in, given what there is."""

from __future__ import annotations

import contextlib
import copy
from dataclasses import replace

from ghost_agent.fleet import CLAIMS, COLLECTIONS, NODES, PODS
from tests.unit.agent.kube import NOON, agent, claim, container, pod
from tests.unit.agent.oracle import PROFILES, SLICES, Gpu, Machine, device
from tests.unit.agent.world import MACHINES, World

H100, A30, T4 = "h100-sxm5-80gb", "a30", "t4"
LAYOUTS = {
    H100: [
        (),
        tuple(("1g.10gb", start) for start in range(7)),
        (("3g.40gb", 0), ("3g.40gb", 4)),
        (("4g.40gb", 0), ("2g.20gb", 4), ("1g.10gb", 6)),
        (("1g.20gb", 0), ("1g.20gb", 4)),
        (("7g.80gb", 0),),
    ],
    A30: [(("1g.6gb", 0), ("1g.6gb", 1), ("2g.12gb", 2)), (("2g.12gb", 0), ("2g.12gb", 2)), (("4g.24gb", 0),)],
    T4: [None],
}
ON_DEMAND = {H100: ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb"], A30: ["1g.6gb", "2g.12gb", "4g.24gb"]}
NO_PLACES = {("1g.10gb", 7), ("2g.20gb", 6)}
FAULTS = [("xid", 79), ("xid", 31), ("xid", 48), ("gpu-lost", None), ("thermal", None), ("pcie", None)]
LOADS = [
    {},
    {"kubectl-ghost.dev/gpu-util": "4"},
    {"kubectl-ghost.dev/phases": "training", "kubectl-ghost.dev/gpu-memory": "12Gi"},
    {"kubectl-ghost.dev/phases": "download=1m,train=30m:util=20..90"},
    {"run.ai/simulated-gpu-utilization": "10-30", "gpu-fraction": "0.5"},
    {"kubectl-ghost.dev/gpu-util": "much", "kubectl-ghost.dev/gpu-memory": "80"},
]
STARTS = ["2026-06-01T05:00:00Z", "2026-06-01T11:59:00Z", "2026-06-01T12:30:00Z"]
AGES = ["2026-06-01T01:00:00Z", "2026-06-01T02:00:00Z"]
GPU, SHARED, PART = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"


class History:
    """A world, a moment and the agent that lives through it; the methods without underscore are the steps."""

    def __init__(self, chance, **options):
        self.chance, self.options = chance, options
        self.world, self.moment = World(), NOON
        self.agent = agent(**options)
        self.restarted = False

    # Nodes.

    def node_is_made_or_declared_anew(self):
        self.world.write_node(self._name(), self._machine(), anew=self._rarely())

    def gpu_changes(self):
        name = self._some(NODES)
        if name:
            machine = self.machine(name)
            gpus = list(machine.gpus)
            gpus[self.chance.randrange(len(gpus))] = self._gpu(machine.model, machine.dynamic)
            self.world.write_node(name, replace(machine, gpus=tuple(gpus)))

    def node_fails_or_comes_back(self):
        name = self._some(NODES)
        if name:
            machine = self.machine(name)
            self.world.write_node(name, replace(machine, answers=not machine.answers))

    def node_loses_its_marks(self):
        name = self._some(NODES)
        if name:
            self.world.write_node(name, self.machine(name), **self._one({"ours": False}, {"simulated": False}))

    def node_goes(self):
        self._delete(NODES)

    # Pods.

    def pod_with_a_claim(self):
        """What a scheduler does: a claim's devices are of the node that the pod is on."""
        on, namespace, entry = self._name(), self._one("default", "ml"), self._one("x", "y")
        item = self._pod(on, namespace, claims={"gpu": entry})
        self.world.write(PODS, item)
        granted = self._claim(entry, on, namespace)
        granted["status"]["reservedFor"] = [{"resource": "pods", "uid": item["metadata"]["uid"]}]
        self.world.write(CLAIMS, granted)

    def pod_that_is_counted(self):
        on = self._name()
        item = self._pod(on, self._one("default", "ml"), annotations=self._record(on))
        self.world.write(PODS, item)

    def pod_that_is_nowhere(self):
        self.world.write(PODS, self._pod("", "default"))

    def pod_changes(self):
        key = self._some(PODS)
        if key:
            item = copy.deepcopy(self.world.objects[PODS][key])
            self._one(self._to_phase, self._to_record, self._to_template, self._to_extended, self._to_node)(item)
            self.world.write(PODS, item)

    def pod_goes(self):
        self._delete(PODS)

    # Claims.

    def claim_is_allocated(self):
        namespace = self._one("default", "ml")
        item = self._claim(self._one("x", "y"), self._name(), namespace)
        item["status"]["reservedFor"] = self._consumers(namespace)
        self.world.write(CLAIMS, item)

    def claim_is_reserved(self):
        key = self._some(CLAIMS)
        if key:
            item = copy.deepcopy(self.world.objects[CLAIMS][key])
            item["status"]["reservedFor"] = self._consumers(item["metadata"]["namespace"])
            self.world.write(CLAIMS, item)

    def claim_is_given_back(self):
        key = self._some(CLAIMS)
        if key:
            item = copy.deepcopy(self.world.objects[CLAIMS][key])
            item["status"].pop("reservedFor", None)
            if self._rarely():
                item["status"].pop("allocation", None)
            self.world.write(CLAIMS, item)

    def claim_goes(self):
        self._delete(CLAIMS)

    # The agent, and time.

    def events_arrive(self):
        for _ in range(self.chance.randrange(1, 8)):
            self.world.hear(self.agent.fleet, self._one(*COLLECTIONS))

    def everything_arrives(self):
        for collection in COLLECTIONS:
            while self.world.queues[collection]:
                self.world.hear(self.agent.fleet, collection)

    def collection_is_listed_anew(self):
        self.world.list(self.agent.fleet, self._one(*COLLECTIONS))

    def time_goes_by(self):
        self.moment += self._one(0.25, 15.0, 600.0, 86400.0, -30.0, -7200.0)

    def agent_is_killed_and_started_again(self):
        self.agent, self.restarted = self.newcomer(), True

    def one_node_is_scraped(self):
        """A scrape of a node of its own: what else has changed waits for its turn."""
        with contextlib.suppress(KeyError):
            self.agent.text(self.moment, self._name())

    def agent_looks_for_what_is_to_be_recorded(self):
        self.agent.snapshot.unrecorded()

    def newcomer(self):
        """Another agent that lists what this one has heard of, in some order."""
        fresh = agent(**self.options)
        self.world.tell(fresh.fleet, self.chance)
        return fresh

    def all_goes(self):
        """Everything is deleted, and heard to be."""
        for collection in COLLECTIONS:
            for key in list(self.world.objects[collection]):
                self.world.delete(collection, key)
        self.everything_arrives()

    # What steps are made of.

    def machine(self, name):
        """What a node is at present."""
        return self.world.machines[self.world.objects[NODES][name]["metadata"]["resourceVersion"]]

    def _one(self, *choices):
        return self.chance.choice(choices)

    def _rarely(self):
        return self.chance.random() < 0.2

    def _name(self):
        return self._one(*MACHINES)

    def _some(self, collection):
        known = list(self.world.objects[collection])
        return self.chance.choice(known) if known else None

    def _delete(self, collection):
        key = self._some(collection)
        if key:
            self.world.delete(collection, key)

    def _machine(self):
        model = self._one(H100, H100, A30, T4)
        dynamic = model != T4 and self._rarely()
        return Machine(
            model=model,
            gpus=tuple(self._gpu(model, dynamic) for _ in range(self._one(1, 2, 2, 3))),
            counted=self._one(True, False),
            dynamic=dynamic,
            strategy=self._one("mixed", "mixed", "single", "none"),
            replicas=self._one(1, 1, 2),
            renamed=self._rarely(),
            answers=not self._rarely(),
        )

    def _gpu(self, model, dynamic):
        faults = {self._one(*FAULTS) for _ in range(self._one(0, 0, 0, 1, 1, 2))}
        return Gpu(
            layout=None if dynamic else self._one(None, None, *LAYOUTS[model]),
            faults=tuple(sorted(faults, key=str)),
            last_xid=self._one(None, None, 31, 94),
            occupied=self._rarely(),
        )

    def _pod(self, on, namespace, **more):
        """A pod of one or two containers, maybe with others before or beside them."""
        inits = [self._container("init")] if self._rarely() else []
        inits += [self._container("proxy", restartPolicy="Always")] if self._rarely() else []
        return pod(
            self._one("a", "b", "c"),
            *map(self._container, self._one(["main"], ["main", "side"])),
            on=on,
            namespace=namespace,
            phase=self._one("Running", "Running", "Pending"),
            started=self._one(*STARTS),
            created=self._one(*AGES),
            uid=f"uid-{self.world.made}",
            initContainers=inits,
            **{**more, "annotations": {**self._one(*LOADS), **more.get("annotations", {})}},
        )

    def _container(self, name, **more):
        named = self.chance.sample(["gpu", "gpu/r0", "gpu/r1", "other"], self._one(0, 1, 1, 2))
        limits = {
            self._one(GPU, GPU, GPU, SHARED, PART, "cpu"): self._one(0, 1, 1, 2) for _ in range(self._one(0, 1, 2))
        }
        return container(name, *named, limits=limits, **more)

    def _claim(self, name, on, namespace):
        devices = [
            f"{self._one('r0', 'r1', 'r0/best')}={self._one(*self._devices(on))}" for _ in range(self._one(1, 2, 3))
        ]
        driver = "gpu.example.com" if self._rarely() and self._rarely() else "gpu.nvidia.com"
        return claim(name, devices, on=on, namespace=namespace, admin=self._rarely(), driver=driver)

    def _devices(self, name):
        """Devices that a claim can have been given: those that are there now, or of a node that is not known yet."""
        if name not in self.world.objects[NODES]:
            return ["gpu-0"]
        machine, found = self.machine(name), []
        for index, gpu in enumerate(machine.gpus):
            parts = gpu.layout or ()
            if machine.dynamic:
                parts = [
                    (profile, start)
                    for profile in ON_DEMAND[machine.model]
                    for start in range(0, SLICES[machine.model], PROFILES[machine.model][profile][1])
                    if (profile, start) not in NO_PLACES
                ]
            found += [device(index, machine.model, *place) for place in parts] or [f"gpu-{index}"]
        return found

    def _record(self, on):
        """What stands on a pod of the device-plugin path: nothing, the truth, or what was copied from elsewhere."""
        known = [f"{share}{end}" for share in self._devices(on) for end in ("", "::0", "::1")]
        record = [self._one(*known, "gpu-99") for _ in range(self._one(0, 1, 1, 2))]
        return {"kubectl-ghost.dev/gpus": ",".join(record)} if record else {}

    def _consumers(self, namespace):
        present = [item["metadata"] for item in self.world.objects[PODS].values()]
        uids = [metadata["uid"] for metadata in present if metadata["namespace"] == namespace]
        chosen = self.chance.sample(uids, min(len(uids), self._one(0, 1, 2, 3)))
        return [{"resource": "pods", "name": "p", "uid": uid} for uid in [*chosen, "uid-of-one-that-is-gone"]]

    def _to_phase(self, item):
        item["status"]["phase"] = self._one("Running", "Pending", "Succeeded", "Failed")

    def _to_record(self, item):
        item["metadata"]["annotations"] |= self._record(item["spec"].get("nodeName", ""))

    def _to_template(self, item):
        item["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": self._one("x", "y")}]

    def _to_extended(self, item):
        mapping = {"containerName": "main", "resourceName": GPU, "requestName": "r0"}
        item["status"]["extendedResourceClaimStatus"] = {
            "resourceClaimName": self._one("x", "y"),
            "requestMappings": [mapping, {**mapping, "containerName": "side", "requestName": "r1"}],
        }

    def _to_node(self, item):
        if not item["spec"].get("nodeName"):
            item["spec"]["nodeName"] = self._name()


STEPS = [name for name, found in vars(History).items() if callable(found) and name[0] != "_"]
STEPS = [name for name in STEPS if name not in ("newcomer", "machine", "all_goes")]
