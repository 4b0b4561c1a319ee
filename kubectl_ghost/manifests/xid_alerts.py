"""Alerts for the XIDs of NVIDIA's catalogue, one name for each recovery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubectl_ghost.domain.alert_catalogue import (
    Advice,
    XidAlert,
    codes_by_advice,
    limits,
    unknown_xid_alert,
    xid_alert,
)
from kubectl_ghost.domain.fault_catalogue import codes
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests.alert_rule import alert, holders, identity, mig_instance, place
from kubectl_ghost.manifests.promql import largest, selector
from kubectl_ghost.manifests.series_labels import SeriesLabels

_FIELD = "DCGM_FI_DEV_XID_ERRORS"


def xid_alerts(labels: SeriesLabels) -> list[Json]:
    """A rule for each recovery that NVIDIA's catalogue names, and one for codes that it does not describe."""
    by_recovery: dict[str | None, dict[Advice, tuple[int, ...]]] = {}
    for advice, found in codes_by_advice().items():
        by_recovery.setdefault(advice.recovery, {})[advice] = found
    known = [_known(labels, recovery, said) for recovery, said in by_recovery.items()]
    # Code 0 stands for no error. Old exporters have no err_code at all: what they report is told of here.
    strange = f'!~"{_either([0, *codes()])}"'
    return [*known, _rule(labels, unknown_xid_alert(), strange, "NVIDIA's catalogue does not describe it.", None)]


def _known(labels: SeriesLabels, recovery: str | None, said: Mapping[Advice, tuple[int, ...]]) -> Json:
    these = sorted(code for found in said.values() for code in found)
    return _rule(labels, xid_alert(recovery), f'=~"{_either(these)}"', _advice(labels, said), recovery)


def _rule(labels: SeriesLabels, kind: XidAlert, codes_matcher: str, advice: str, recovery: str | None) -> Json:
    shown = selector(_FIELD, f"{labels.code}{codes_matcher}")
    expression = largest((*labels.of_device, labels.code, labels.message), f"{shown} > 0")
    minutes = limits().passing_minutes
    if kind.passing:
        same = ", ".join((labels.uuid, labels.instance, labels.code))
        expression += f"\nunless on ({same})\n{shown} offset {minutes}m"
    annotations = {
        "summary": f"XID {{{{ $value }}}} on {place(labels)}: {{{{ $labels.{labels.message} }}}}",
        "description": f"{identity(labels)}{mig_instance(labels)}. {advice}",
        "pods": holders(labels, minutes, whole=False),
    }
    return alert(kind.name, expression, kind.severity, annotations, recovery=recovery)


def _either(numbers: Iterable[int]) -> str:
    return "|".join(map(str, numbers))


def _advice(labels: SeriesLabels, said: Mapping[Advice, tuple[int, ...]]) -> str:
    """What NVIDIA advises; where that differs among the codes of a rule, chosen by the code that the alert is about."""
    sentences = [(_either(found), _sentence(advice)) for advice, found in said.items()]
    if len(sentences) == 1:
        return sentences[0][1]
    cases = [f'if match "^({found})$" $labels.{labels.code} }}}}{sentence}' for found, sentence in sentences]
    return "{{ " + "{{ else ".join(cases) + "{{ end }}"


def _sentence(advice: Advice) -> str:
    steps = ", then ".join(filter(None, dict.fromkeys((advice.immediate, advice.investigatory))))
    return f"NVIDIA's advice: {steps}." if steps else "NVIDIA's catalogue gives no advice."
