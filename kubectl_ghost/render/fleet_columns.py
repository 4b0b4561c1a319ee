"""The columns of `get pools|nodes|gpus` and of `status`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kubectl_ghost.domain.keys import POOL_LABEL, RACK_LABEL, TEMPLATE_LABEL, ZONE_LABEL, Json
from kubectl_ghost.render.age import age
from kubectl_ghost.render.columns import Column


def pool_columns(now: datetime) -> list[Column]:
    """Columns of Pool views."""
    return [
        Column("NAME", _name),
        Column("GPU", _at("spec", "product")),
        Column("NODES", _at("status", "nodes")),
        Column("READY", _at("status", "readyNodes")),
        Column("GPUS", _at("status", "gpus")),
        Column("HELD", _at("status", "heldGpus")),
        Column("FREE", _at("status", "freeGpus")),
        Column("OCCUPIED", _at("status", "occupiedGpus")),
        Column("FAULTY", _at("status", "faultyGpus")),
        Column("ADVERTISE", _at("spec", "advertise")),
        Column("MIG", _at("spec", "mig"), wide=True),
        Column("AGE", _age(now)),
        Column("CPU", _at("spec", "cpu"), wide=True),
        Column("MEMORY", _at("spec", "memory"), wide=True),
        Column("PODS", _at("spec", "pods"), wide=True),
        Column("ZONES", lambda row: ",".join(row["spec"]["zones"]), wide=True),
        Column("RACKS", lambda row: ",".join(row["spec"]["racks"]), wide=True),
    ]


def node_columns(now: datetime, held: Callable[[str], int], free: Callable[[str], int]) -> list[Column]:
    """Columns of Node objects.

    Args:
        held: from a node's name to the number of its GPUs that are held.
        free: the same for those that a pod could get.
    """
    return [
        Column("NAME", _name),
        Column("STATUS", _node_status),
        Column("POOL", lambda row: _label(POOL_LABEL)(row) or _label(TEMPLATE_LABEL)(row)),
        Column("GPU", _label("nvidia.com/gpu.product")),
        Column("GPUS", _label("nvidia.com/gpu.count")),
        Column("HELD", lambda row: str(held(_name(row)))),
        Column("FREE", lambda row: str(free(_name(row)))),
        Column("AGE", _age(now)),
        Column("VERSION", lambda row: str(row.get("status", {}).get("nodeInfo", {}).get("kubeletVersion") or "")),
        Column("CPU", _capacity("cpu"), wide=True),
        Column("MEMORY", _capacity("memory"), wide=True),
        Column("ZONE", _label(ZONE_LABEL), wide=True),
        Column("RACK", _label(RACK_LABEL), wide=True),
    ]


def gpu_columns(now: datetime) -> list[Column]:
    """Columns of GPU views."""
    return [
        Column("NAME", _name),
        Column("POOL", _at("spec", "pool")),
        Column("GPU", _at("spec", "product")),
        Column("STATE", _at("status", "state")),
        Column("MIG", _at("status", "mig")),
        Column("HOLDER", _holders),
        Column("AGE", _age(now)),
        Column("CLAIM", _claims, wide=True),
        Column("UUID", _at("spec", "uuid"), wide=True),
        Column("PCI", _at("spec", "pciBusID"), wide=True),
        Column("ROOT", _at("spec", "pcieRoot"), wide=True),
    ]


WORKLOAD_COLUMNS = [
    Column("NAMESPACE", lambda row: str(row["namespace"])),
    Column("WORKLOAD", lambda row: str(row["workload"])),
    Column("PODS", lambda row: str(row["pods"])),
    Column("GPUS", lambda row: str(row["gpus"])),
    Column("VIA", lambda row: ",".join(row["via"])),
    Column("NODES", lambda row: _few(row["nodes"])),
]
"""Columns of the holders by workload."""

WAITING_COLUMNS = [
    Column("NAMESPACE", lambda row: str(row["namespace"])),
    Column("PENDING", lambda row: f"pod/{row['pod']}"),
    Column("REASON", lambda row: str(row["reason"])),
]
"""Columns of the pods that wait for GPUs; the reason is the scheduler's sentence, so it comes last."""


def _few(names: list[str], most: int = 4) -> str:
    rest = len(names) - most
    return ",".join(names[:most]) + (f"+{rest}" if rest > 0 else "")


def _name(row: Json) -> str:
    return str(row["metadata"]["name"])


def _at(part: str, key: str) -> Callable[[Json], str]:
    return lambda row: str(row[part].get(key, ""))


def _label(key: str) -> Callable[[Json], str]:
    return lambda row: str((row["metadata"].get("labels") or {}).get(key) or "")


def _capacity(key: str) -> Callable[[Json], str]:
    return lambda row: str((row.get("status", {}).get("capacity") or {}).get(key) or "")


def _age(now: datetime) -> Callable[[Json], str]:
    return lambda row: age(row["metadata"].get("creationTimestamp"), now)


def _node_status(node: Json) -> str:
    conditions = {item["type"]: item["status"] for item in node.get("status", {}).get("conditions") or ()}
    words = {"True": "Ready", "False": "NotReady"}
    status = words.get(conditions.get("Ready", ""), "Unknown")
    return status + (",SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else "")


def _holders(gpu: Json) -> str:
    names = [f"{holder['namespace']}/{holder['pod']}" for holder in gpu["status"]["holders"]]
    return ",".join(dict.fromkeys(names))


def _claims(gpu: Json) -> str:
    return ",".join(holder["claim"] for holder in gpu["status"]["holders"] if "claim" in holder)
