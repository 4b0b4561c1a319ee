"""The text that a scrape gets, to the byte as dcgm-exporter writes it: HELP, TYPE, series, field after field.

prometheus_client is not used for it: it would call the counters `..._total` and sort the labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ghost_agent.exporter_counters import EXPORTER_FIELDS
from ghost_agent.sampling import XID_FIELD, Sample
from kubectl_ghost.domain.dcgm_fields import Field, all_fields
from kubectl_ghost.domain.fault_catalogue import xid_message

CONTENT_TYPE = "text/plain; charset=utf-8"
"""What Go makes of the exporter's answer, which names none."""


def render(fields: Sequence[Field], samples: Sequence[Sample], moment: float) -> Iterator[str]:
    """The exposition, a piece for each field; nothing for a field that no device has.

    Args:
        fields: those of the samples' values, in that order.
        moment: when the samples were taken, seconds since 1970.
    """
    plain = [(block.plain, sample.values) for sample in samples for block in sample.device.blocks]
    classic = {field.field_id: field.name for field in all_fields()}
    for position, field in enumerate(fields):
        name = classic[field.field_id]
        if name in EXPORTER_FIELDS:
            lines = list(_exporter_lines(field.name, name, samples, moment))
        elif name == XID_FIELD:
            lines = list(_xid_lines(field.name, position, samples))
        else:
            lines = [
                f"{field.name}{block} {values[position]}\n" for block, values in plain if values[position] is not None
            ]
        if lines:
            yield f"# HELP {field.name} {field.help}\n# TYPE {field.name} {field.prom_type}\n{''.join(lines)}"


def _xid_lines(shown: str, position: int, samples: Sequence[Sample]) -> Iterator[str]:
    for sample in samples:
        code = sample.device.xids[-1].code if sample.device.xids else 0
        error = (code, xid_message(code))
        for block in sample.device.blocks:
            yield f"{shown}{block.text(error=error)} {sample.values[position]}\n"


def _exporter_lines(shown: str, name: str, samples: Sequence[Sample], moment: float) -> Iterator[str]:
    for sample in samples:
        for labels, value in EXPORTER_FIELDS[name](sample, moment):
            for block in sample.device.blocks:
                yield f"{shown}{block.text(labels)} {value}\n"
