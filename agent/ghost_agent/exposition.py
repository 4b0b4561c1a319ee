"""The text that a scrape gets, to the byte as dcgm-exporter writes it: HELP, TYPE, series, field after field.

prometheus_client is not used for it: it would call the counters `..._total` and sort the labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ghost_agent.exporter_counters import EXPORTER_FIELDS, KNOWN_WITHOUT_GPU
from ghost_agent.sampling import XID_FIELD, Sample
from kubectl_ghost.domain.dcgm_fields import Field, classic
from kubectl_ghost.domain.fault_catalogue import xid_message

CONTENT_TYPE = "text/plain; charset=utf-8"
"""What Go makes of the exporter's answer, which names none."""


def render(fields: Sequence[Field], samples: Sequence[Sample], moment: float) -> Iterator[str]:
    """The exposition, a piece for each field; nothing for a field that no device has.

    Args:
        fields: those of the samples' values, in that order.
        moment: when the samples were taken, seconds since 1970.
    """
    for field, series in zip(fields, series_of(fields, samples, moment), strict=True):
        lines = [f"{label} {value}\n" for label, value in series]
        if lines:
            yield f"# HELP {field.name} {field.help}\n# TYPE {field.name} {field.prom_type}\n{''.join(lines)}"


Series = Iterable[tuple[str, str]]
"""Name with labels, and the value."""


def series_of(fields: Sequence[Field], samples: Sequence[Sample], moment: float) -> Iterator[Series]:
    """The series of each field, in order."""
    plain = [(block.plain, sample.values) for sample in samples for block in sample.device.blocks]
    for position, field in enumerate(fields):
        name = classic(field).name
        if name in EXPORTER_FIELDS:
            yield _exporter_series(field.name, name, samples, moment)
        elif name == XID_FIELD:
            yield _xid_series(field.name, position, samples)
        else:
            yield [(field.name + block, value) for block, values in plain if (value := values[position]) is not None]


def _xid_series(shown: str, position: int, samples: Sequence[Sample]) -> Series:
    for sample in samples:
        code, value = _last_xid(sample), sample.values[position]
        if value is not None:
            for block in sample.device.blocks:
                yield shown + block.text(error=(code, xid_message(code))), value


def _last_xid(sample: Sample) -> int:
    return sample.device.xids[-1].code if sample.device.xids else 0


def _exporter_series(shown: str, name: str, samples: Sequence[Sample], moment: float) -> Series:
    for sample in samples:
        if sample.gpu.effect.xid_only and name not in KNOWN_WITHOUT_GPU:
            continue
        for labels, value in EXPORTER_FIELDS[name](sample, moment):
            for block in sample.device.blocks:
                yield shown + block.text(labels), str(value)
