"""Panels of what is broken, and of what the sensors of the GPUs read."""

from __future__ import annotations

from kubectl_ghost.manifests.grafana_panels import Query, Section, lines, states, table
from kubectl_ghost.manifests.grafana_queries import NODE, Queries, average, number_of, total
from kubectl_ghost.manifests.promql import largest, selector


def faults(queries: Queries) -> Section:
    """XIDs, alerts, and what else tells of a fault."""
    labels, node, name = queries.labels, [queries.labels.node], queries.node_name
    errors = f"{queries.series('DCGM_FI_DEV_XID_ERRORS')} > 0"
    named = largest((*labels.of_device, labels.code, labels.message), errors)
    over_time = Query(largest(labels.of_device, errors), queries.device_name)
    firing = selector("ALERTS", 'alertname=~"GPU.*"', 'alertstate="firing"', f'{labels.node}=~"${NODE}"')
    reporting = Query(number_of(queries.present(), node), name)
    replays = Query(f"60 * {largest(node, queries.rate('DCGM_FI_DEV_PCIE_REPLAY_COUNTER'))}", name)
    rows = [
        Query(queries.by_node(f"DCGM_FI_DEV_{field}_REMAPPED_ROWS"), f"{field.lower()} {name}")
        for field in ("UNCORRECTABLE", "CORRECTABLE")
    ]
    panels = (
        table("XIDs", "The last error of each GPU, until its exporter starts anew.", Query(named, "XID")),
        table(
            "Firing alerts",
            "Of the rules that kubectl ghost metrics rules prints.",
            Query(firing),
            hidden=("Value", "__name__", "alertstate"),
        ),
        states("XIDs over time", "The code of the last error.", over_time),
        lines("GPUs that report", "A GPU that is lost is missing here.", "short", reporting),
        lines("PCIe replays a minute", "Of each node's worst GPU. More than eight are too many.", "short", replays),
        lines("Remapped memory rows", "Of each node's worst GPU.", "short", *rows),
    )
    return Section("Faults", panels)


def conditions(queries: Queries) -> Section:
    """Memory, power and temperature of each node."""
    node, name = [queries.labels.node], queries.node_name
    used, free = (total(node, queries.device(f"DCGM_FI_DEV_FB_{word}")) for word in ("USED", "FREE"))
    share = Query(f"100 * {used} / ({used} + {free})", name)
    power = Query(total(node, queries.gpu("DCGM_FI_DEV_POWER_USAGE")), name)
    hottest = (
        Query(queries.by_node("DCGM_FI_DEV_GPU_TEMP"), f"GPU {name}"),
        Query(queries.by_node("DCGM_FI_DEV_MEMORY_TEMP"), f"memory {name}"),
    )
    panels = (
        lines("Memory used", "Of what is there for workloads.", "percent", share),
        lines("Power", "What each node's GPUs draw.", "watt", power, stacked=True),
        lines("Temperature", "Of each node's hottest GPU.", "celsius", *hottest),
    )
    return Section("Memory, power and temperature", panels)


def clocks(queries: Queries) -> Section:
    """How fast the GPUs are, and what lowers their clocks."""
    node, name = [queries.labels.node], queries.node_name
    clock = queries.gpu("DCGM_FI_DEV_SM_CLOCK")
    # Grafana's unit of a frequency is the hertz.
    ends = [Query(f"1e6 * {end} by ({node[0]}) ({clock})", f"{end} {name}") for end in ("max", "min")]
    lowered = [
        Query(f"{largest(node, queries.rate(f'DCGM_FI_DEV_{reason}_VIOLATION'))} / 1e7", f"{reason.lower()} {name}")
        for reason in ("THERMAL", "POWER")
    ]
    pipes = [
        Query(f"100 * {average(node, queries.device(f'DCGM_FI_PROF_{pipe}_ACTIVE'))}", f"{word} {name}")
        for pipe, word in (("PIPE_TENSOR", "tensor cores"), ("DRAM", "memory interface"))
    ]
    panels = (
        lines("SM clock", "Of each node's fastest and slowest GPU.", "hertz", *ends),
        lines(
            "Time at lowered clocks",
            "Of each node's worst GPU. dcgm-exporter does not print these fields by default: "
            "DCGM_FI_DEV_THERMAL_VIOLATION, DCGM_FI_DEV_POWER_VIOLATION.",
            "percent",
            *lowered,
        ),
        lines("Tensor cores and memory interface", "Share of cycles at work, mean of each node.", "percent", *pipes),
    )
    return Section("Clocks", panels)
