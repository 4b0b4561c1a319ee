"""Panels of who holds which GPUs and what they do with them."""

from __future__ import annotations

from kubectl_ghost.manifests.alert_rule import HELD_FIELD
from kubectl_ghost.manifests.grafana_panels import Query, Section, bars, distribution, lines, map_of, stat, table
from kubectl_ghost.manifests.grafana_queries import Queries, average, legend, number_of, total
from kubectl_ghost.manifests.promql import largest


def fleet(queries: Queries) -> Section:
    """The fleet in eight numbers."""
    used, taken = queries.utilization(), queries.utilization(queries.taken)
    errors = f"count by ({queries.labels.uuid}) ({queries.series('DCGM_FI_DEV_XID_ERRORS')} > 0)"
    counter = queries.series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
    energy = largest(queries.labels.of_gpu, f"increase({counter}[$__range])")
    panels = (
        stat("GPUs", "GPUs that report.", number_of(queries.present())),
        stat("Held", "GPUs of which a pod holds at least a part.", number_of(queries.present(queries.taken))),
        stat("Free", "GPUs of which no pod holds any part.", number_of(queries.free())),
        stat("With an XID", "GPUs with an error since their exporter started.", number_of(errors), alarming=True),
        stat("Utilisation", "Mean of all GPUs and MIG instances.", f"avg({used})", "percent"),
        stat("Utilisation of held", "Mean of what pods hold.", f"avg({taken})", "percent"),
        stat("Power", "What all GPUs draw.", f"sum({queries.gpu('DCGM_FI_DEV_POWER_USAGE')})", "watt"),
        # The counter is in millijoules.
        stat("Energy", "What all GPUs have drawn in the time that is shown.", f"sum({energy}) / 3.6e9", "kwatth"),
    )
    return Section("Fleet", panels)


def utilization(queries: Queries) -> Section:
    """How busy the GPUs are, as maps of heat."""
    every = queries.utilization()
    of_node = Query(average([queries.labels.node], every), queries.node_name)
    of_device = Query(every, queries.device_name)
    panels = (
        distribution("GPUs by utilisation", "How many GPUs and MIG instances are how busy.", every),
        map_of("Nodes", "Mean of each node's GPUs and MIG instances.", of_node),
        map_of("GPUs", "Choose a node above where there are many.", of_device),
    )
    return Section("Utilisation", panels)


def pods(queries: Queries) -> Section:
    """What each pod holds, and how much of it it uses."""
    labels, of_pod, name = queries.labels, queries.of_pod, queries.pod_name
    devices = queries.device(HELD_FIELD, *queries.held, of=of_pod)
    busy = average(of_pod, queries.utilization(*queries.held, of=of_pod))
    memory = total(of_pod, queries.device("DCGM_FI_DEV_FB_USED", *queries.held, of=of_pod))
    columns = (
        Query(number_of(devices, of_pod), "GPUs or instances"),
        Query(busy, "Utilisation, %"),
        Query(memory, "Memory, MiB"),
    )
    by_namespace = Query(number_of(devices, [labels.namespace]), legend(labels.namespace))
    taken = Query(number_of(queries.present(queries.taken), [labels.node]), f"held on {queries.node_name}")
    free = Query(number_of(queries.free(), [labels.node]), f"free on {queries.node_name}")
    panels = (
        lines(
            "Held by namespace",
            "GPUs and MIG instances; one that pods share counts for each.",
            "short",
            by_namespace,
            stacked=True,
        ),
        lines("Utilisation by pod", "Mean of what the pod holds.", "percent", Query(busy, name)),
        lines("Memory by pod", "Framebuffer that is used.", "mbytes", Query(memory, name), stacked=True),
        table("Pods", "What each pod holds and how much it uses of it.", *columns),
        lines("Free and held", "GPUs of each node.", "short", taken, free, stacked=True),
    )
    return Section("Pods", panels)


def mig(queries: Queries) -> Section:
    """MIG instances: how many, and what they do."""
    profile = queries.labels.profile
    instances = queries.device(HELD_FIELD, queries.split)
    taken = queries.device(HELD_FIELD, queries.split, queries.taken)
    activity = f"100 * {queries.device('DCGM_FI_PROF_GR_ENGINE_ACTIVE', queries.split)}"
    memory = queries.device("DCGM_FI_DEV_FB_USED", queries.split)
    name = f"{queries.device_name} {legend(profile)}"
    panels = (
        bars(
            "Instances by profile",
            "All of them, and those that a pod holds.",
            Query(number_of(instances, [profile]), legend(profile)),
            Query(number_of(taken, [profile]), f"{legend(profile)}, held"),
        ),
        lines("Activity of instances", "Of the graphics engine.", "percent", Query(activity, name)),
        lines("Memory of instances", "Framebuffer that is used.", "mbytes", Query(memory, name)),
    )
    return Section("MIG", panels)
