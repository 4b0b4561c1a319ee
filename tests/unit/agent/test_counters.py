"""Counters: integrals of what happens, that never fall while the agent lives."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.dcgm_fields import all_fields
from kubectl_ghost.domain.hardware import GpuState
from tests.unit.agent.kube import NOON, agent, broken, by_claim, hardware, node
from tests.unit.agent.series import named, read, values

ENERGY, POWER, LINKS = (
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
)
COUNTED = [field.name for field in all_fields() if field.prom_type == "counter" and field.field_id < 9000]
FIELDS = f"{ENERGY},{POWER},{LINKS}"
FIRST = ("node-0", 0, "", "")
HALF_A_DAY = 12 * 3600
RAMP = {keys.PHASES_ANNOTATION: "warmup=10m:util=0..100,training:util=100"}


def energy(shown, moment=NOON):
    """Millijoules of the first GPU."""
    return values(shown.text(moment), ENERGY)[FIRST]


def power(shown, moment=NOON):
    """Watts of the first GPU."""
    return values(shown.text(moment), POWER)[FIRST]


def test_at_first_sight_an_idle_gpu_has_used_what_it_draws_since_its_node_was_made():
    shown = agent(node(hardware(1)), fields=FIELDS)
    assert energy(shown) == pytest.approx(power(shown) * HALF_A_DAY * 1000, rel=1e-6)


def test_at_first_sight_the_work_of_present_pods_is_in_it():
    idle = agent(node(hardware(1)), fields=FIELDS)
    shown = agent(node(hardware(1)), *by_claim("train", "gpu-0", started="2026-06-01T11:00:00Z"), fields=FIELDS)
    more = (power(shown) - power(idle)) * 3600 * 1000
    assert energy(shown) == pytest.approx(energy(idle) + more, rel=1e-6)


def test_at_first_sight_a_ramp_counts_as_the_half_of_its_end():
    start = {"annotations": RAMP, "started": "2026-06-01T11:50:00Z"}
    shown = agent(node(hardware(1)), *by_claim("train", "gpu-0", **start), fields=FIELDS)
    idle = agent(node(hardware(1)), fields=FIELDS)
    more = (power(shown) - power(idle)) / 2 * 600 * 1000
    assert energy(shown) == pytest.approx(energy(idle) + more, rel=1e-6)


def test_from_look_to_look_energy_is_the_power_over_the_time():
    shown = agent(node(hardware(1)), *by_claim("train", "gpu-0"), fields=FIELDS)
    before = energy(shown)
    assert energy(shown, NOON + 15) - before == pytest.approx(power(shown) * 15 * 1000, abs=1)


def test_a_ramp_between_two_looks_comes_out_exactly():
    start = {"annotations": RAMP, "started": "2026-06-01T12:00:00Z"}
    shown = agent(node(hardware(1)), *by_claim("train", "gpu-0", **start), fields=FIELDS)
    before, low = energy(shown), power(shown)
    after, high = energy(shown, NOON + 300), power(shown, NOON + 300)
    assert after - before == pytest.approx((low + high) / 2 * 300 * 1000, abs=1)


def test_links_carry_nothing_while_nothing_works():
    shown = agent(node(hardware(1)), fields=FIELDS)
    shown.text()
    assert values(shown.text(NOON + 60), LINKS) == {FIRST: 0}


def test_when_the_clock_steps_back_counters_stand_still_until_it_has_caught_up():
    shown = agent(node(hardware(1)), fields=FIELDS)
    course = [energy(shown, NOON + passed) for passed in (0, 100, 40, 99, 100, 110)]
    assert course[1] == course[2] == course[3] == course[4]
    assert course[5] - course[4] == pytest.approx(power(shown) * 10 * 1000, abs=1)


@pytest.mark.parametrize("state", [broken("gpu-lost"), broken()], ids=["lost", "off the bus"])
def test_a_gpu_that_comes_back_goes_on_where_it_was(state):
    shown = agent(node(hardware(1)), *by_claim("train", "gpu-0"), fields=FIELDS)
    before = energy(shown, NOON + 1000)
    shown.put(node(hardware(1, states={0: state})))
    assert not named(shown.text(NOON + 2000), ENERGY)
    _, granted = by_claim("train", "gpu-0")
    shown.remove(granted)
    shown.put(node(hardware(1)))
    assert energy(shown, NOON + 3000) >= before


def test_counters_of_a_pod_that_has_gone_stay():
    holder, granted = by_claim("train", "gpu-0")
    shown = agent(node(hardware(1)), holder, granted, fields=FIELDS)
    before = values(shown.text(), LINKS)[FIRST]
    shown.remove(holder, granted)
    assert values(shown.text(), LINKS)[FIRST] == before > 0


def test_a_node_that_was_made_anew_begins_anew():
    shown = agent(node(hardware(1)), fields=FIELDS)
    before = energy(shown)
    shown.remove(node(hardware(1)))
    assert shown.text() == ""
    shown.put(node(hardware(1), created="2026-06-01T11:59:00Z", uid="another"))
    assert energy(shown) == pytest.approx(before * 60 / HALF_A_DAY, rel=1e-6)


def test_how_often_one_looks_does_not_matter():
    coarse, fine = (agent(node(hardware(1)), *by_claim("train", "gpu-0"), fields=FIELDS) for _ in range(2))
    for shown, step in ((coarse, 600), (fine, 1)):
        for passed in range(0, 601, step):
            shown.text(NOON + passed)
    assert energy(coarse, NOON + 600) == pytest.approx(energy(fine, NOON + 600), abs=2)


@settings(deadline=None, max_examples=40)
@given(moments=st.lists(st.floats(-5000, 5000), min_size=2, max_size=10), states=st.data())
def test_counters_never_fall_whatever_the_clock_and_the_gpu_do(moments, states):
    known = [GpuState(), broken("thermal"), broken(code=48), broken("gpu-lost"), broken("pcie"), broken("nvlink-down")]
    shown = agent(node(hardware(1)), *by_claim("train", "gpu-0"), fields=",".join(COUNTED))
    reached = {}
    for moment in moments:
        shown.put(node(hardware(1, states={0: states.draw(st.sampled_from(known))})))
        for series in read(shown.text(NOON + moment)):
            assert series.value >= reached.get(series.name, 0)
            reached[series.name] = series.value
