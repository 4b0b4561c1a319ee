"""From the slices that are there to those that should be: what to write, and in which generation of the pool.

While a pool's slices are of different generations, claims for all devices fail in the whole cluster. So the generation
is raised only when more than one slice changes; a pool whose one slice changes is never half written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubectl_ghost.domain.keys import Json


@dataclass(frozen=True, slots=True)
class SliceUpdate:
    """One slice: what is there (None: nothing), what should be, and whether they differ."""

    live: Json | None
    body: Json
    differs: bool


def slice_updates(wanted: Sequence[Json], live: Sequence[Json]) -> tuple[list[SliceUpdate], list[Json]]:
    """What to write, in order, and the slices that are to go afterwards.

    The body of a slice that is there is that slice with everything that is ours in it replaced: labels and annotations
    of others stay.
    """
    present = {item["metadata"]["name"]: item for item in live}
    added = _times_added(live)
    bodies = [_body(item, present.get(item["metadata"]["name"]), added) for item in wanted]
    leftovers = [item for name, item in present.items() if name not in {item["metadata"]["name"] for item in wanted}]
    generation = _generation(bodies, present, len(leftovers))
    updates = []
    for body in bodies:
        there = present.get(body["metadata"]["name"])
        dated = _dated(body, generation)
        updates.append(SliceUpdate(there, dated, there is None or _differs(dated, there)))
    return updates, leftovers


def _generation(bodies: Sequence[Json], present: dict[str, Json], leftovers: int) -> int:
    if not present:
        return 1
    generations = {item["spec"]["pool"]["generation"] for item in present.values()}
    newest: int = max(generations)
    changed = [body for body in bodies if _content_differs(body, present.get(body["metadata"]["name"]))]
    if len(generations) > 1:
        # An interrupted write: those of the newest generation are what it had got to, if they are still right.
        stale = any(_generation_of(present, body) == newest for body in changed)
        return newest + 1 if stale else newest
    return newest if len(changed) + leftovers <= 1 else newest + 1


def _generation_of(present: dict[str, Json], body: Json) -> int | None:
    there = present.get(body["metadata"]["name"])
    return there["spec"]["pool"]["generation"] if there else None


def _content_differs(body: Json, live: Json | None) -> bool:
    return live is None or _dated(body, live["spec"]["pool"]["generation"])["spec"] != live["spec"]


def _dated(body: Json, generation: int) -> Json:
    spec = body["spec"]
    return {**body, "spec": {**spec, "pool": {**spec["pool"], "generation": generation}}}


def _differs(body: Json, live: Json) -> bool:
    ours, theirs = body["metadata"], live["metadata"]
    same_labels = (ours.get("labels") or {}) == (theirs.get("labels") or {})
    same_owners = ours.get("ownerReferences") == theirs.get("ownerReferences")
    return body["spec"] != live["spec"] or not same_labels or not same_owners


def _body(wanted: Json, live: Json | None, added: dict[tuple[str, ...], str]) -> Json:
    spec = _with_times(wanted["spec"], added)
    if live is None:
        return {**wanted, "spec": spec}
    metadata = live["metadata"]
    labels = {**(metadata.get("labels") or {}), **wanted["metadata"]["labels"]}
    owners = wanted["metadata"]["ownerReferences"]
    return {**live, "metadata": {**metadata, "labels": labels, "ownerReferences": owners}, "spec": spec}


def _times_added(live: Sequence[Json]) -> dict[tuple[str, ...], str]:
    """When each taint that is there was added: the server fills it in, and it must not look like a difference."""
    times = {}
    for item in live:
        for device in item["spec"].get("devices") or ():
            for taint in device.get("taints") or ():
                if "timeAdded" in taint:
                    times[_identity(device, taint)] = taint["timeAdded"]
    return times


def _with_times(spec: Json, added: dict[tuple[str, ...], str]) -> Json:
    if not added or "devices" not in spec:
        return spec
    return {**spec, "devices": [_with_device_times(device, added) for device in spec["devices"]]}


def _with_device_times(device: Json, added: dict[tuple[str, ...], str]) -> Json:
    if "taints" not in device:
        return device
    taints = []
    for taint in device["taints"]:
        time = added.get(_identity(device, taint))
        taints.append({**taint, "timeAdded": time} if time else taint)
    return {**device, "taints": taints}


def _identity(device: Json, taint: Json) -> tuple[str, ...]:
    return device["name"], taint["key"], taint.get("value", ""), taint["effect"]
