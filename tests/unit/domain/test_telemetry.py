"""Sensors of every board: they hold together, at rest and at work, whole and broken."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_ghost.domain.board_figures import board_figures
from kubectl_ghost.domain.catalogue import model, model_keys
from kubectl_ghost.domain.dcgm_fields import MigBehaviour, all_fields
from kubectl_ghost.domain.fault_catalogue import codes, kinds
from kubectl_ghost.domain.fault_series import effect_of
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.telemetry import (
    ENERGY,
    NVLINK_BYTES,
    VARIANTS,
    Sensors,
    gpu_readings,
    memory_readings,
    power_w,
    rates,
)

H100 = "h100-sxm5-80gb"
POWER, UTIL, CLOCK = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_SM_CLOCK"
TEMPERATURE, MEMORY_TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_MEMORY_TEMP"
percentages = st.just(0.0) | st.floats(1e-6, 100)
"""Nobody can declare less than a millionth of a percent and more than nothing."""
EFFECTS = [effect_of(Fault(kind)) for kind in kinds() if kind != "xid"]
EFFECTS += [effect_of(Fault("xid", code)) for code in codes()]
boards = st.sampled_from(model_keys())
sensors = st.builds(
    Sensors,
    model=boards,
    utilization=percentages,
    effect=st.sampled_from(EFFECTS),
    variant=st.integers(0, VARIANTS - 1),
)


@pytest.mark.parametrize(
    ("key", "idle", "full", "clocks", "temperatures"),
    [
        # Idle as captured; full load is 95 % of the limit.
        (H100, (66.0, 72.0), 665.0, (345, 1980), (29, 65)),
        ("t4", (33.51, 33.51), 66.5, (1590, 1590), (33, 75)),
        ("b200", (140.0, 206.0), 950.0, (120, 1965), (39, 70)),
    ],
)
def test_boards_at_rest_and_at_work(key, idle, full, clocks, temperatures):
    resting = [gpu_readings(Sensors(key, 0, variant=variant)) for variant in range(VARIANTS)]
    assert (resting[0][POWER], resting[-1][POWER]) == pytest.approx(idle)
    working = gpu_readings(Sensors(key, 100))
    assert working[POWER] == pytest.approx(full)
    assert (resting[0][CLOCK], working[CLOCK]) == clocks
    assert (resting[0][TEMPERATURE], working[TEMPERATURE]) == temperatures
    assert {found[UTIL] for found in resting} == {0}
    assert working[UTIL] == 100


@settings(deadline=None)
@given(sensors)
def test_whatever_works_draws_more_than_at_rest_and_no_more_than_its_limit(found):
    board = board_figures(found.model)
    resting = power_w(Sensors(found.model, 0, found.effect, found.variant))
    working = power_w(found)
    assert resting <= working <= board.power_limit_w
    if found.utilization > 1e-3:
        assert working > resting
        assert gpu_readings(found)[UTIL] >= 1
    elif found.utilization == 0:
        assert gpu_readings(found)[UTIL] == 0


@settings(deadline=None)
@given(sensors)
def test_readings_are_within_what_the_board_can_do(found):
    board, read = board_figures(found.model), gpu_readings(found)
    assert 0 <= read["DCGM_FI_DEV_MEM_COPY_UTIL"] <= read[UTIL] <= 100
    assert 0 < read[CLOCK] <= max(board.max_sm_mhz, board.idle_sm_mhz)
    assert 0 < read["DCGM_FI_DEV_MEM_CLOCK"] <= max(board.max_mem_mhz, board.idle_mem_mhz)
    assert board.idle_temperature_c <= read[TEMPERATURE] <= board.slowdown_temperature_c
    assert (
        (read[MEMORY_TEMPERATURE] >= read[TEMPERATURE]) if board.memory_temperature else read[MEMORY_TEMPERATURE] == 0
    )


@settings(deadline=None)
@given(sensors)
def test_nothing_rises_backwards_and_energy_is_the_power(found):
    rising = rates(found)
    assert min(rising.values()) >= 0
    assert rising[ENERGY] == power_w(found) * 1000
    assert set(rising) & set(NVLINK_BYTES) == (set(NVLINK_BYTES) if board_figures(found.model).nvlink_links else set())


def test_links_carry_what_the_work_needs_and_those_that_are_down_nothing():
    board = board_figures(H100)
    total, one = (rates(Sensors(H100, 50))[name] for name in NVLINK_BYTES)
    assert total == pytest.approx(one * board.nvlink_links)
    assert rates(Sensors(H100, 0))[NVLINK_BYTES[0]] == 0
    down = rates(Sensors(H100, 50, effect_of(Fault("nvlink-down"))))
    assert down[NVLINK_BYTES[0]] == pytest.approx(one * (board.nvlink_links - 1))


@settings(deadline=None)
@given(board=boards, share=st.floats(0.1, 1), used=st.integers(0, 10**6), utilization=percentages)
def test_framebuffer_is_used_free_and_reserved_and_nothing_else(board, share, used, utilization):
    total = int(model(board).memory_mib * share)
    reserved = int(board_figures(board).fb_reserved_mib * share)
    read = memory_readings(total, reserved, used, utilization)
    parts = [read[f"DCGM_FI_DEV_FB_{part}"] for part in ("FREE", "USED", "RESERVED")]
    assert sum(parts) == total
    assert min(parts) >= 0
    assert parts[1] == min(used, total - reserved)
    engines = {name: value for name, value in read.items() if "_PROF_" in name}
    assert all(0 <= value <= 1 for value in engines.values())
    assert any(engines.values()) is (utilization > 0)


@pytest.mark.parametrize("key", model_keys())
def test_every_field_that_is_a_reading_is_read(key):
    """Between them the two functions read every field of the catalogue, or the board has none of it."""
    read = {*gpu_readings(Sensors(key, 50)), *memory_readings(1000, 10, 100, 50)}
    fields = {field.name for field in all_fields() if field.prom_type != "label" and field.field_id < 9000}
    missing = fields - read - {"DCGM_FI_DEV_XID_ERRORS"}
    assert read <= fields
    board = board_figures(key)
    absent = {name for name in fields if ("NVLINK" in name and not board.nvlink_links)}
    absent |= {name for name in fields if ("_RETIRED_" if board.row_remapper else "ROW") in name}
    assert missing == absent


def test_what_is_read_of_each_instance_is_what_an_instance_has():
    own = {field.name for field in all_fields() if field.mig is MigBehaviour.INSTANCE}
    assert set(memory_readings(1000, 10, 100, 50)) == own - {"DCGM_FI_DEV_XID_ERRORS"}


def test_a_throttled_gpu_is_hot_slow_and_as_busy():
    throttled, well = (gpu_readings(Sensors(H100, 80, *effect)) for effect in ([effect_of(Fault("thermal"))], []))
    assert throttled[UTIL] == well[UTIL] == 80
    assert (throttled[CLOCK], well[CLOCK]) == (990, 1980)
    assert (throttled[TEMPERATURE], well[TEMPERATURE]) == (89, 58)
    assert throttled[POWER] < well[POWER]


def test_a_straggler_is_slow_and_says_nothing():
    effect = effect_of(Fault("slow"))
    assert gpu_readings(Sensors(H100, 80, effect))[CLOCK] == round(1980 * 0.7)
    assert (effect.clock_events, effect.rates, effect.counts) == ((), (), ())


def test_nothing_is_throttled_that_does_not_work():
    effect = effect_of(Fault("power"))
    assert "DCGM_FI_DEV_POWER_VIOLATION" not in rates(Sensors(H100, 0, effect))
    assert rates(Sensors(H100, 1, effect))["DCGM_FI_DEV_POWER_VIOLATION"] == 10**9
    # Errors on the bus come whether it works or not.
    assert rates(Sensors(H100, 0, effect_of(Fault("pcie"))))["DCGM_FI_DEV_PCIE_REPLAY_COUNTER"] == 2
