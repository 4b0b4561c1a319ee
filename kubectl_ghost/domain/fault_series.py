"""What faults do to the metrics of a GPU, read from the fault catalogue: a pure function of the declaration.

How much a fault changes a series is this project's choice (`CHOICE` in data/faults.json); which series it touches
follows from what the fault is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.fault_catalogue import series_of_code, series_of_kind
from kubectl_ghost.domain.faults import Fault, accompanying_xid
from kubectl_ghost.domain.hardware import LastXid, NodeHardware
from kubectl_ghost.domain.keys import Json

FieldValues = tuple[tuple[str, float], ...]
"""DCGM field name and value, sorted."""


@dataclass(frozen=True, slots=True)
class SeriesEffect:
    """What all faults of a GPU together do to its series.

    Attributes:
        gone: the GPU has no series at all.
        xid_only: it has its XID series and no other.
        hot: its temperature is that at which it slows down.
        clock: factor of the SM clock.
        power: factor of the power that it draws beyond its idle power.
        links_down: NVLinks that carry nothing.
        clock_events: what dcgm-exporter calls the reasons for a lower clock.
        counts: what counters have risen by, by field.
        rates: what counters rise by in a second, by field.
        gauges: values that are as they are, by field.
    """

    gone: bool = False
    xid_only: bool = False
    hot: bool = False
    clock: float = 1.0
    power: float = 1.0
    links_down: int = 0
    clock_events: tuple[str, ...] = ()
    counts: FieldValues = ()
    rates: FieldValues = ()
    gauges: FieldValues = ()


NO_EFFECT = SeriesEffect()


def effect_on(hardware: NodeHardware, index: int) -> SeriesEffect:
    """What the faults of a GPU and of its node do to the GPU's series."""
    found = (*hardware.faults, *hardware.gpu(index).faults)
    return combined(map(effect_of, found)) if found else NO_EFFECT


def effect_of(fault: Fault) -> SeriesEffect:
    """What one fault does."""
    return _effect(fault.kind, fault.code)


@cache
def _effect(kind: str, code: int | None) -> SeriesEffect:
    row: Json = series_of_kind(kind) if code is None else series_of_code(code)
    return SeriesEffect(
        gone=row.get("gone", False),
        xid_only=row.get("xid_only", False),
        hot=row.get("hot", False),
        clock=row.get("clock", 1.0),
        power=row.get("power", 1.0),
        links_down=row.get("links_down", 0),
        clock_events=tuple(row.get("clock_events", ())),
        counts=_pairs(row.get("counts", {})),
        rates=_pairs(row.get("rates", {})),
        gauges=_pairs(row.get("gauges", {})),
    )


def combined(effects: Iterable[SeriesEffect]) -> SeriesEffect:
    """Several faults at once: the worst of factors and flags, the sum of what is counted."""
    found = list(effects)
    return SeriesEffect(
        gone=any(effect.gone for effect in found),
        xid_only=any(effect.xid_only for effect in found),
        hot=any(effect.hot for effect in found),
        clock=min(effect.clock for effect in found),
        power=min(effect.power for effect in found),
        links_down=sum(effect.links_down for effect in found),
        clock_events=tuple(sorted({event for effect in found for event in effect.clock_events})),
        counts=_sums(effect.counts for effect in found),
        rates=_sums(effect.rates for effect in found),
        gauges=_pairs({field: value for effect in found for field, value in effect.gauges}),
    )


def _sums(values: Iterable[FieldValues]) -> FieldValues:
    total: dict[str, float] = {}
    for name, value in (pair for pairs in values for pair in pairs):
        total[name] = total.get(name, 0) + value
    return _pairs(total)


def _pairs(values: Mapping[str, float]) -> FieldValues:
    return tuple(sorted(values.items()))


def xids_on(hardware: NodeHardware, index: int) -> tuple[LastXid, ...]:
    """Every XID that a GPU has reported and that is known of, the latest last."""
    state = hardware.gpu(index)
    if not state.faults and state.last_xid is None:
        return ()
    board = model(hardware.settings.model)
    declared = [
        LastXid(code, fault.since) for fault in state.faults if (code := accompanying_xid(fault, board)) is not None
    ]
    return tuple(sorted((*filter(None, [state.last_xid]), *declared), key=lambda xid: (xid.since, xid.code)))
