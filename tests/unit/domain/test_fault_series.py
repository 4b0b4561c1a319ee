"""What faults do to series: each, several at once, and what is remembered of XIDs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ghost.domain.dcgm_fields import all_fields
from kubectl_ghost.domain.fault_catalogue import codes, kinds
from kubectl_ghost.domain.fault_series import NO_EFFECT, SeriesEffect, combined, effect_of, effect_on, xids_on
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState, LastXid
from tests.unit.agent.kube import broken, hardware

FAULTS = [Fault(kind) for kind in kinds() if kind != "xid"] + [Fault("xid", code) for code in codes()]
DOUBLE_BIT = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
effects = st.lists(st.sampled_from(FAULTS).map(effect_of), max_size=4)


def xids(*faults, last=None, model="h100-sxm5-80gb"):
    return [xid.code for xid in xids_on(hardware(model=model, states={0: GpuState(faults=faults, last_xid=last)}), 0)]


def test_a_gpu_without_faults_is_well():
    assert effect_on(hardware(), 0) == NO_EFFECT
    assert effect_on(hardware(states={1: broken()}), 0) == NO_EFFECT


@pytest.mark.parametrize(
    ("fault", "effect"),
    [
        (Fault("xid", 79), SeriesEffect(xid_only=True)),
        (Fault("gpu-lost"), SeriesEffect(gone=True)),
        (Fault("node-down"), SeriesEffect(gone=True)),
        (Fault("slow"), SeriesEffect(clock=0.7, power=0.8)),
        (Fault("pcie"), SeriesEffect(rates=(("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 2.0),))),
        (Fault("xid", 13), NO_EFFECT),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
def test_single_faults(fault, effect):
    assert effect_of(fault) == effect


def test_what_breaks_the_node_breaks_each_of_its_gpus():
    down = hardware(faults=(Fault("driver-crash"),), states={0: broken("slow")})
    assert effect_on(down, 0) == replace(effect_of(Fault("slow")), gone=True)
    assert effect_on(down, 1).gone


def test_of_several_faults_the_worst_counts_and_what_is_counted_adds_up():
    faults = (Fault("slow"), Fault("thermal"), Fault("xid", 48), Fault("ecc-uncorrectable"), Fault("nvlink-down"))
    effect = effect_on(hardware(states={0: GpuState(faults=faults)}), 0)
    assert (effect.clock, effect.power, effect.hot, effect.links_down) == (0.5, 0.5, True, 1)
    assert effect.clock_events == ("hw_slowdown", "hw_thermal")
    assert dict(effect.counts)[DOUBLE_BIT] == 2
    assert not effect.gone
    assert not effect.xid_only


@given(effects)
def test_the_order_of_faults_does_not_matter(found):
    if found:
        assert combined(found) == combined(found[::-1])
        assert combined([combined(found), NO_EFFECT]) == combined(found)


def test_effects_speak_of_fields_that_there_are_and_counters_rise():
    types = {field.name: field.prom_type for field in all_fields()}
    for fault in FAULTS:
        effect = effect_of(fault)
        assert 0 < effect.clock <= 1
        assert 0 < effect.power <= 1
        assert {types[name] for name, _ in (*effect.counts, *effect.rates)} <= {"counter"}
        assert {types[name] for name, _ in effect.gauges} <= {"gauge"}
        assert all(value > 0 for _, value in (*effect.counts, *effect.rates))


def test_a_gpu_that_has_had_no_xid_has_none():
    assert xids() == []
    assert xids(Fault("thermal")) == []


def test_xids_come_in_the_order_of_their_times():
    later, sooner = Fault("xid", 31, since="2026-06-01T11:00:00Z"), Fault("xid", 94, since="2026-06-01T10:00:00Z")
    assert xids(later, sooner) == [94, 31]
    assert xids(sooner, last=LastXid(13, "2026-06-01T10:30:00Z")) == [94, 13]


def test_a_kind_of_fault_brings_the_xid_of_its_architecture():
    link = Fault("nvlink-down", since="2026-06-01T11:00:00Z")
    assert xids(link) == [74]
    assert xids(link, model="b200") == [149]
