"""The alert for GPUs and MIG instances that a pod has held for long without using them."""

from __future__ import annotations

from kubectl_ghost.domain.alert_catalogue import limits
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests.alert_rule import alert, identity, mig_instance, place
from kubectl_ghost.manifests.promql import any_of, largest, selector
from kubectl_ghost.manifests.series_labels import SeriesLabels


def idle_alert(labels: SeriesLabels) -> Json:
    """One alert a pod and device: it keeps the pod's labels, so that it can be sent to whom the pod belongs."""
    held = f'{labels.pod}!=""'
    # GPU_UTIL is absent in MIG mode; there, the engine's activity is measured for each instance.
    utilization = selector("DCGM_FI_DEV_GPU_UTIL", held)
    activity = selector("DCGM_FI_PROF_GR_ENGINE_ACTIVE", f'{labels.instance}!=""', held)
    figures = limits()
    who = "/".join(f"{{{{ $labels.{name} }}}}" for name in (labels.namespace, labels.pod))
    annotations = {
        "summary": f'{who} holds {place(labels)} and uses {{{{ printf "%.1f" $value }}}} % of it',
        "description": f"{identity(labels)}{mig_instance(labels)}. On average over {figures.idle_hours} hours.",
    }
    idle = any_of(_idle(labels, utilization), _idle(labels, activity, "100 * "))
    return alert("GPUIdle", idle, "info", annotations, recovery=None)


def _idle(labels: SeriesLabels, series: str, factor: str = "") -> str:
    """Little used on average, and held now and at the beginning: the average of an hour says nothing about a day."""
    figures = limits()
    by = (*labels.of_device, *labels.of_holder)
    average = largest(by, f"{factor}avg_over_time({series}[{figures.idle_hours}h])")
    before = f"{series} offset {figures.idle_hours - 1}h"
    return f"{average} < {figures.idle_percent}\nand {largest(by, series)}\nand {largest(by, before)}"
