"""Who has which GPU by the objects on the API server alone, worked out apart from the product's own code."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from kubectl_ghost.domain.keys import Json
from tests.soak.exposition import Holding, holdings
from tests.soak.ledger import GPUS_ANNOTATION

_DRIVER = "gpu.nvidia.com"


def held(pods: Iterable[Json], claims: Iterable[Json]) -> set[Holding]:
    """Every GPU that a pod has, by a claim that is reserved for it or by what is recorded on it."""
    alive = {pod["metadata"]["uid"]: pod for pod in pods if _holds(pod)}
    found: set[Holding] = set()
    for pod in alive.values():
        recorded = (pod["metadata"].get("annotations") or {}).get(GPUS_ANNOTATION, "")
        found |= {(pod["spec"]["nodeName"], _index(device), _name(pod)) for device in recorded.split(",") if device}
    for claim in claims:
        status = claim.get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        for consumer in status.get("reservedFor") or ():
            if pod := alive.get(consumer["uid"]):
                found |= {
                    (result["pool"], _index(result["device"]), _name(pod))
                    for result in results
                    if result["driver"] == _DRIVER
                }
    return found


def wrong_records(pods: Iterable[Json]) -> list[str]:
    """What cannot be true of the records: too few or too many GPUs for a pod, or one GPU for two pods."""
    problems: list[str] = []
    users: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pod in filter(_holds, pods):
        devices = (pod["metadata"].get("annotations") or {}).get(GPUS_ANNOTATION, "").split(",")
        wanted = sum(
            int(container["resources"].get("limits", {}).get("nvidia.com/gpu", 0))
            for container in pod["spec"]["containers"]
        )
        if wanted:
            for device in devices:
                users[(pod["spec"]["nodeName"], device)].append(_name(pod))
            if len(set(devices)) != wanted or "" in devices:
                problems.append(f"{_name(pod)} asks for {wanted} GPUs and has {','.join(devices) or 'none'} on record")
    return problems + [
        f"{'/'.join(gpu)} is recorded on {' and '.join(names)}" for gpu, names in users.items() if names[1:]
    ]


def differences(text: str, expected: set[Holding], nodes: Iterable[str], gpus: int) -> list[str]:
    """How a scrape of some nodes differs from what they should show, in words.

    Every GPU is there, held ones by their pods and at work, all others free and idle.
    """
    chosen = set(nodes)
    found = list(holdings(text))
    shown = {holding for holding, _ in found if holding[2]}
    wanted = {holding for holding in expected if holding[0] in chosen}
    problems = [f"{_words(holding)} is not shown" for holding in sorted(wanted - shown)]
    problems += [f"{_words(holding)} is shown and not so" for holding in sorted(shown - wanted)]
    problems += [
        f"{_words(holding)} has utilisation {value:g}" for holding, value in found if bool(holding[2]) != (value > 0)
    ]
    listed = Counter(node for node, _ in {holding[:2] for holding, _ in found})
    problems += [f"{node} shows {listed[node]} of {gpus} GPUs" for node in sorted(chosen) if listed[node] != gpus]
    problems += [f"{node} is shown and was not asked for" for node in sorted(set(listed) - chosen)]
    taken = {holding[:2] for holding in shown}
    problems += [
        f"{_words(holding)} is shown as free beside its pod"
        for holding, _ in found
        if not holding[2] and holding[:2] in taken
    ]
    return problems


def _holds(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in ("Succeeded", "Failed")


def _words(holding: Holding) -> str:
    node, gpu, pod = holding
    return f"{pod or 'nobody'} on {node}/gpu-{gpu}"


def _index(device: str) -> int:
    return int(device.removeprefix("gpu-"))


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
