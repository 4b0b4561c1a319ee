"""Who must be shown on which device, said once more and naively, from the rules alone.

Nothing of the product is used here: names, numbers and tables are written out, so that a mistake there is not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PROFILES = {
    "h100-sxm5-80gb": {
        "1g.10gb": (19, 1),
        "1g.20gb": (15, 2),
        "2g.20gb": (14, 2),
        "3g.40gb": (9, 4),
        "4g.40gb": (5, 4),
        "7g.80gb": (0, 8),
    },
    "a30": {"1g.6gb": (14, 1), "2g.12gb": (5, 2), "4g.24gb": (0, 4)},
    "t4": {},
}
"""By model, each profile's id and its memory slices (nvidia-smi mig -lgip and -lgipp)."""
SLICES = {"h100-sxm5-80gb": 8, "a30": 4, "t4": 0}
IGNORED_XIDS = {13, 31, 43, 45, 68, 109}
"""Those that NVIDIA's device plugin takes for the application's: the GPU stays healthy."""


@dataclass(frozen=True)
class Gpu:
    """What is to be known of one GPU. `layout` is None out of MIG mode; `faults` are kinds with their XID or None."""

    layout: tuple[tuple[str, int], ...] | None = None
    faults: tuple[tuple[str, int | None], ...] = ()
    last_xid: int | None = None
    occupied: bool = False


@dataclass(frozen=True)
class Machine:
    """What is to be known of a node. `answers` is False while it is down or reboots."""

    model: str = "h100-sxm5-80gb"
    gpus: tuple[Gpu, ...] = (Gpu(), Gpu())
    counted: bool = True
    """Whether the device plugin offers the GPUs."""
    dynamic: bool = False
    strategy: str = "mixed"
    replicas: int = 1
    renamed: bool = False
    answers: bool = True


@dataclass
class View:
    """What has been heard of the cluster: machines by node name, pods and claims as they came."""

    machines: dict[str, Machine] = field(default_factory=dict)
    pods: dict[str, dict] = field(default_factory=dict)
    claims: dict[str, dict] = field(default_factory=dict)


def device(gpu, model, profile, start):
    """An instance's name."""
    return f"gpu-{gpu}-mig-{profile.replace('.', '')}-{PROFILES[model][profile][0]}-{start}"


def number(model, profile, start):
    """GPU_I_ID: sizes in falling order, places from the front."""
    size = PROFILES[model][profile][1]
    return SLICES[model] // size - 1 + start // size


def shown(view):
    """Every device that has series, as (node, GPU, profile, number), with all who use it.

    A user is (namespace, pod, container, replica, claim, the device's name where a claim has it).
    """
    found = {}
    for name, machine in view.machines.items():
        if machine.answers:
            found.update(_on(name, machine, view))
    return found


def _on(name, machine, view):
    pods = [pod for pod in view.pods.values() if pod["spec"].get("nodeName") == name and not finished(pod)]
    users = {}
    for used, user in (*_by_claims(name, pods, view.claims.values()), *_by_counting(machine, pods)):
        users.setdefault(used, set()).add(user)
    for index, gpu in enumerate(machine.gpus):
        if any(kind == "gpu-lost" for kind, _ in gpu.faults):
            continue
        parts = gpu.layout or ()
        if machine.dynamic:
            parts = [
                (profile, start)
                for profile, (_, size) in PROFILES[machine.model].items()
                for start in range(0, SLICES[machine.model], size)
                if device(index, machine.model, profile, start) in users
            ]
        for profile, start in parts:
            place = (name, index, profile, str(number(machine.model, profile, start)))
            yield place, users.get(device(index, machine.model, profile, start), set())
        if not parts:
            yield (name, index, "", ""), users.get(f"gpu-{index}", set())


def finished(pod):
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def _by_claims(name, pods, claims):
    """A claim's devices belong to the pods that it is reserved for, and there to the containers that name it."""
    for claim in claims:
        status = claim.get("status", {})
        consumers = {consumer["uid"] for consumer in status.get("reservedFor", [])}
        for result in status.get("allocation", {}).get("devices", {}).get("results", []):
            if result.get("adminAccess") or result["driver"] != "gpu.nvidia.com" or result["pool"] != name:
                continue
            for pod in pods:
                if pod["metadata"]["uid"] in consumers:
                    metadata = pod["metadata"]
                    # A request of several alternatives is called `request/alternative` in the result.
                    request = result["request"].split("/")[0]
                    for container in _containers(pod, claim["metadata"]["name"], request) or [""]:
                        user = (metadata["namespace"], metadata["name"], container, "", claim["metadata"]["name"])
                        yield result["device"], (*user, result["device"])


def _containers(pod, claim_name, request):
    extended = pod["status"].get("extendedResourceClaimStatus", {})
    if extended.get("resourceClaimName") == claim_name:
        return [item["containerName"] for item in extended["requestMappings"] if item["requestName"] == request]
    spec = pod["spec"]
    lasting = [*spec["containers"], *(item for item in spec.get("initContainers", []) if sidecar(item))]
    passing = [item for item in spec.get("initContainers", []) if not sidecar(item)]
    for containers in (lasting, passing):
        found = [item["name"] for item in containers if _names(pod, item, claim_name, request)]
        if found:
            return found
    return []


def sidecar(container):
    return container.get("restartPolicy") == "Always"


def _names(pod, container, claim_name, request):
    entries = [*pod["spec"].get("resourceClaims", []), *pod["status"].get("resourceClaimStatuses", [])]
    called = [entry["name"] for entry in entries if entry.get("resourceClaimName") == claim_name]
    references = container["resources"].get("claims", [])
    return any(item["name"] in called and item.get("request") in (None, request) for item in references)


def _by_counting(machine, pods):
    """The device plugin gives each container what it asks for, and a pod keeps what is recorded on it."""
    shares = _shares(machine)
    asking = [(pod, wanted) for pod in pods if (wanted := _wanted(pod))]
    asking.sort(key=lambda item: [item[0]["metadata"][key] for key in ("creationTimestamp", "namespace", "name")])
    given, taken = {}, []
    for pod, wanted in asking:
        record = [item for item in pod["metadata"]["annotations"].get("kubectl-ghost.dev/gpus", "").split(",") if item]
        fits = all(share not in taken for share in record) and len(set(record)) == len(record)
        for resource in {*wanted, *shares}:
            held = [share for share, _ in shares.get(resource, []) if share in record]
            fits = fits and len(held) == wanted.get(resource, 0)
        if fits and len(record) == sum(wanted.values()):
            given[pod["metadata"]["uid"]] = record
            taken += record
    for pod, wanted in asking:
        if pod["metadata"]["uid"] in given:
            continue
        got = []
        for resource in sorted(wanted):
            free = [share for share, healthy in shares.get(resource, []) if healthy and share not in taken]
            got += free[: wanted[resource]]
            taken += free[: wanted[resource]]
        given[pod["metadata"]["uid"]] = got
    for pod, _ in asking:
        yield from _dealt(pod, given[pod["metadata"]["uid"]], shares)


def _dealt(pod, got, shares):
    metadata = pod["metadata"]
    for resource in shares:
        rest = [share for share in got if share in [item for item, _ in shares[resource]]]
        for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
            for share in rest[: asked(container, resource)]:
                used, _, replica = share.partition("::")
                yield used, (metadata["namespace"], metadata["name"], container["name"], replica, "", "")
            rest = rest[asked(container, resource) :]


def _wanted(pod):
    """As the scheduler counts; a pod that the scheduler has made a claim for is served by that."""
    if pod["status"].get("extendedResourceClaimStatus"):
        return {}
    spec, wanted = pod["spec"], {}
    inits = spec.get("initContainers", [])
    names = {name for item in [*spec["containers"], *inits] for name in item["resources"]["limits"]}
    for resource in (name for name in names if name.startswith("nvidia.com/")):
        beside, most = 0, 0
        for item in inits:
            if sidecar(item):
                beside += asked(item, resource)
                most = max(most, beside)
            else:
                most = max(most, beside + asked(item, resource))
        number = max(most, beside + sum(asked(item, resource) for item in spec["containers"]))
        if number:
            wanted[resource] = number
    return wanted


def asked(container, resource):
    return int(container["resources"]["limits"].get(resource, 0))


def _shares(machine):
    """Resource name -> every share with whether it is given to somebody new, the first ones first."""
    found = {"nvidia.com/gpu": []} if machine.counted else {}
    layouts = [gpu.layout for gpu in machine.gpus]
    kinds = {profile for layout in layouts for profile, _ in layout or ()}
    alike = all(layout is None for layout in layouts) or (all(layouts) and len(kinds) == 1)
    for index, gpu in enumerate(machine.gpus if machine.counted else ()):
        healthy = not gpu.occupied and not any(map(_unhealthy, gpu.faults))
        if gpu.layout is None or machine.strategy == "none":
            if machine.strategy != "single" or alike:
                found["nvidia.com/gpu"].append((f"gpu-{index}", healthy))
            continue
        for profile, start in gpu.layout:
            resource = f"nvidia.com/mig-{profile}"
            if machine.strategy == "single":
                if not alike:
                    continue
                resource = "nvidia.com/gpu"
            found.setdefault(resource, []).append((device(index, machine.model, profile, start), healthy))
    if machine.replicas > 1 and machine.counted:
        whole = found.pop("nvidia.com/gpu")
        name = "nvidia.com/gpu.shared" if machine.renamed else "nvidia.com/gpu"
        found[name] = [(f"{share}::{turn}", well) for turn in range(machine.replicas) for share, well in whole]
    return found


def _unhealthy(fault):
    kind, code = fault
    if kind == "gpu-lost":
        return True
    return code is not None and code not in IGNORED_XIDS
