"""What the sensors of a GPU read: a pure function of the board, of what runs on it, and of what is broken.

The readings hold together as they do on hardware: a GPU that works draws more than its idle power, framebuffer used,
free and reserved make up the total, a throttled GPU is busy at a lower clock. Idle figures are real captures where
there are any (data/telemetry.json); how they grow with the load is this project's choice, linear up to full load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kubectl_ghost.domain.board_figures import BoardFigures, board_figures
from kubectl_ghost.domain.fault_series import NO_EFFECT, SeriesEffect

Readings = Mapping[str, float]
"""DCGM field name -> value. A field that the board or its mode does not have is not there."""

VARIANTS: Final = 8
"""Boards of one model differ a little: how many different ones there are."""
_FULL_POWER: Final = 0.95
"""Of the power limit, at full load. CHOICE: training draws a little less than the limit."""
_MEMORY_HOTTER_C: Final = 10
"""Memory above GPU temperature at full load. CHOICE within the estimate of 5 to 15."""
_MEMORY_COPY: Final = 0.5
"""Of the utilisation, as memory utilisation. CHOICE."""
_PROFILE: Final = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1.0,
    "DCGM_FI_PROF_SM_ACTIVE": 1.0,
    "DCGM_FI_PROF_SM_OCCUPANCY": 0.75,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.5,
    "DCGM_FI_PROF_DRAM_ACTIVE": 0.5,
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE": 0.05,
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": 0.25,
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": 0.35,
}
"""Fractions of the utilisation: those of NVIDIA's nvml-mock (NVIDIA/k8s-test-infra 3b2b865), DRAM is a CHOICE."""
_PCIE_IDLE: Final = 200_000
_PCIE_BUSY: Final = {3: 1e9, 4: 2e9, 5: 4e9, 6: 8e9}
"""Bytes a second each way, by PCIe generation. CHOICE: a small part of what sixteen lanes carry."""
_NVLINK_BUSY: Final = 0.3
"""Of the links' rate, at full load. CHOICE."""
_STEADY_ZERO: Final = (
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_POWER_VIOLATION",
    "DCGM_FI_DEV_THERMAL_VIOLATION",
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
    "DCGM_FI_DEV_LOW_UTIL_VIOLATION",
    "DCGM_FI_DEV_RELIABILITY_VIOLATION",
)
"""Zero on a healthy GPU."""
_REMAPPER: Final = (
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
)
_RETIRED: Final = ("DCGM_FI_DEV_RETIRED_SBE", "DCGM_FI_DEV_RETIRED_DBE", "DCGM_FI_DEV_RETIRED_PENDING")
"""Pages are retired where rows are not remapped: a board has one or the other."""
_NVLINK_ERRORS: Final = (
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
)
ENERGY: Final = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
NVLINK_BYTES: Final = ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0")


@dataclass(frozen=True, slots=True)
class Sensors:
    """What decides about the sensors of a whole GPU at a moment.

    `utilization` is in percent; `variant` is which of the boards of this model it is, 0 to VARIANTS - 1.
    """

    model: str
    utilization: float
    effect: SeriesEffect = NO_EFFECT
    variant: int = 0


def power_w(sensors: Sensors) -> float:
    """The power that the board draws: linear in the utilisation, so that energy is an integral of it."""
    board = board_figures(sensors.model)
    idle = _idle_power(board, sensors.variant)
    return idle + (_FULL_POWER * board.power_limit_w - idle) * sensors.utilization / 100 * sensors.effect.power


def _idle_power(board: BoardFigures, variant: int) -> float:
    """Boards of a captured range spread evenly over it."""
    if board.idle_range_w is None:
        return board.idle_power_w
    low, high = board.idle_range_w
    return low + (high - low) * variant / (VARIANTS - 1)


def rates(sensors: Sensors) -> Readings:
    """What the counters of a GPU rise by in a second: millijoules, bytes, nanoseconds, errors."""
    board = board_figures(sensors.model)
    found: dict[str, float] = {ENERGY: power_w(sensors) * 1000}
    if board.nvlink_links:
        per_link = board.nvlink_mb_s * 1e6 * _NVLINK_BUSY * sensors.utilization / 100
        up = max(0, board.nvlink_links - sensors.effect.links_down)
        found |= dict(zip(NVLINK_BYTES, (per_link * up, per_link), strict=True))
    # Nothing is throttled that does not work.
    found |= {name: rate for name, rate in sensors.effect.rates if sensors.utilization > 0 or "VIOLATION" not in name}
    return found


@lru_cache(maxsize=8192)
def gpu_readings(sensors: Sensors) -> Readings:
    """The sensors of a whole GPU, without its memory (`memory_readings`), and its counters at zero.

    What the counters rise by is in `rates`, and in the effect's counts. The result is shared: do not change it.
    """
    board, busy = board_figures(sensors.model), sensors.utilization / 100
    temperature = _temperature(board, sensors)
    found: dict[str, float] = dict.fromkeys(_STEADY_ZERO, 0)
    found |= {
        "DCGM_FI_DEV_SM_CLOCK": round(board.max_sm_mhz * sensors.effect.clock) if busy else board.idle_sm_mhz,
        "DCGM_FI_DEV_MEM_CLOCK": board.max_mem_mhz if busy else board.idle_mem_mhz,
        "DCGM_FI_DEV_GPU_TEMP": temperature,
        # DCGM reports 0 where there is no sensor: it looks at the status of the whole call only.
        "DCGM_FI_DEV_MEMORY_TEMP": temperature + round(_MEMORY_HOTTER_C * busy) if board.memory_temperature else 0,
        "DCGM_FI_DEV_POWER_USAGE": power_w(sensors),
        "DCGM_FI_DEV_GPU_UTIL": _shown(sensors.utilization),
        "DCGM_FI_DEV_MEM_COPY_UTIL": _shown(sensors.utilization * _MEMORY_COPY),
        "DCGM_FI_DEV_ENC_UTIL": 0,
        "DCGM_FI_DEV_DEC_UTIL": 0,
    }
    pcie = round(_PCIE_IDLE + _PCIE_BUSY[board.pcie_gen] * busy)
    found |= {"DCGM_FI_PROF_PCIE_TX_BYTES": pcie, "DCGM_FI_PROF_PCIE_RX_BYTES": pcie}
    found |= dict.fromkeys(_REMAPPER if board.row_remapper else _RETIRED, 0)
    found |= dict.fromkeys(_NVLINK_ERRORS if board.nvlink_links else (), 0)
    # Where a counter begins: what it has come to is for whoever keeps count.
    found |= dict.fromkeys((ENERGY, *(NVLINK_BYTES if board.nvlink_links else ())), 0)
    found |= {name: value for name, value in sensors.effect.gauges if name in found}
    return found


def _shown(percent: float) -> int:
    """In whole percent; what works at all does not read zero."""
    return max(1, round(percent)) if percent > 0 else 0


def _temperature(board: BoardFigures, sensors: Sensors) -> int:
    if sensors.effect.hot:
        return board.slowdown_temperature_c
    idle = board.idle_temperature_c + sensors.variant // 2
    return round(idle + max(0, board.busy_temperature_c - idle) * sensors.utilization / 100)


@lru_cache(maxsize=8192)
def memory_readings(total_mib: int, reserved_mib: int, used_mib: int, utilization: float) -> Readings:
    """Framebuffer and profiling of a device, whole GPU or MIG instance. The result is shared: do not change it.

    Args:
        total_mib: the device's memory; used, free and reserved make up exactly this.
        used_mib: what the workload asks for; it gets no more than there is.
        utilization: of this device, in percent.
    """
    used = min(used_mib, total_mib - reserved_mib)
    return {
        "DCGM_FI_DEV_FB_FREE": total_mib - reserved_mib - used,
        "DCGM_FI_DEV_FB_USED": used,
        "DCGM_FI_DEV_FB_RESERVED": reserved_mib,
        **{name: fraction * utilization / 100 for name, fraction in _PROFILE.items()},
    }
