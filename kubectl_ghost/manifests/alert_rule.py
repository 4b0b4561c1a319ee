"""One alert of a Prometheus rule file, and the words that all of them share."""

from __future__ import annotations

from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests.promql import selector
from kubectl_ghost.manifests.series_labels import SeriesLabels

Annotations = dict[str, str]
HELD_FIELD = "DCGM_FI_DEV_GPU_TEMP"
"""A field that every GPU and MIG instance has by default, and that goes when a GPU does."""


def record(name: str, expression: str) -> Json:
    """A rule that keeps the result of an expression as series of their own."""
    return {"record": name, "expr": expression}


def alert(
    name: str, expression: str, severity: str, annotations: Annotations, *, recovery: str | None, wait: str = ""
) -> Json:
    """A rule.

    Args:
        name: of the alert.
        expression: PromQL; what it returns, the alert is about.
        severity: info, warning or critical.
        annotations: the texts, templates in Prometheus' notation.
        recovery: what mends it, in the catalogue's word; None where that is unknown.
        wait: how long it has to hold, `5m`; empty: not at all.
    """
    labels = {"severity": severity} | ({"recovery": recovery} if recovery else {})
    waiting = {"for": wait} if wait else {}
    return {"alert": name, "expr": expression, **waiting, "labels": labels, "annotations": annotations}


def place(labels: SeriesLabels) -> str:
    """`GPU 2 of node-3`."""
    return f"GPU {_value(labels.gpu)} of {_value(labels.node)}"


def identity(labels: SeriesLabels) -> str:
    """Model, UUID and bus address."""
    return f"{_value(labels.model)}, {_value(labels.uuid)}, PCI {_value(labels.bus)}"


def mig_instance(labels: SeriesLabels) -> str:
    """The MIG instance, if it is one, after a comma."""
    return f"{{{{ with $labels.{labels.profile} }}}}, MIG {{{{ . }}}} instance {_value(labels.instance)}{{{{ end }}}}"


def holders(labels: SeriesLabels, minutes: int, *, whole: bool) -> str:
    """The pods that have held the alert's device lately, also one that the fault has already ended.

    Args:
        labels: names of the labels.
        minutes: how long ago a pod may have held it.
        whole: whether the alert is about a GPU with all its MIG instances, or about what its labels say.
    """
    device = (labels.uuid,) if whole else (labels.uuid, labels.instance)
    series = selector(HELD_FIELD, *(f'{name}=\\"%s\\"' for name in device), f'{labels.pod}!=\\"\\"')
    query = f"count by ({labels.namespace}, {labels.pod}) (last_over_time({series}[{minutes}m]))"
    arguments = " ".join(f"$labels.{name}" for name in device)
    found = f'printf "{query}" {arguments} | query | sortByLabel "{labels.pod}"'
    pod = f"{{{{ $pod.Labels.{labels.namespace} }}}}/{{{{ $pod.Labels.{labels.pod} }}}}"
    return (
        f"{{{{ range $index, $pod := {found} }}}}{{{{ if $index }}}}, {{{{ end }}}}{pod}{{{{ else }}}}none{{{{ end }}}}"
    )


def _value(label: str) -> str:
    return f"{{{{ $labels.{label} }}}}"
