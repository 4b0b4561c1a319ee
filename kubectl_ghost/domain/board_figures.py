"""What the boards of each GPU model draw, clock and warm up to, read from the packaged catalogue.

Idle figures are captures of real boards where there is one. Each figure's source stands beside it in
data/telemetry.json; the rest is this project's choice, by the rules under `unsourced` there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.keys import Json


@dataclass(frozen=True, slots=True)
class BoardFigures:
    """A model's figures: power in W, clocks in MHz, temperatures in degrees Celsius.

    `memory_temperature`: whether there is a sensor; `row_remapper`: whether broken rows of memory are remapped;
    `nvlink_mb_s`: per link, 0 without NVLink; `fb_reserved_mib`: the memory that the driver keeps;
    `busy_temperature_c`: under full load; `slowdown_temperature_c`: where the board throttles itself;
    `idle_range_w`: what several idle boards drew, lowest and highest, if known; `unsourced`: the figures that are this
    project's choice.
    """

    power_limit_w: float
    idle_power_w: float
    idle_sm_mhz: int
    max_sm_mhz: int
    idle_mem_mhz: int
    max_mem_mhz: int
    memory_temperature: bool
    row_remapper: bool
    nvlink_links: int
    nvlink_mb_s: int
    fb_reserved_mib: int
    idle_temperature_c: int
    busy_temperature_c: int
    slowdown_temperature_c: int
    pcie_gen: int
    idle_range_w: tuple[float, float] | None
    unsourced: frozenset[str]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Ranges, lowest and highest, in which figures of any board may lie; all of them this project's choice.

    `memory_over_gpu_c`: how much warmer than the GPU its memory is under load; `tensor_active`: the ratio while a model
    is trained; `idle_pcie_bytes_s`: what goes over an idle GPU's bus, each way.
    """

    busy_temperature_c: tuple[int, int]
    memory_over_gpu_c: tuple[int, int]
    tensor_active: tuple[float, float]
    idle_pcie_bytes_s: tuple[int, int]


@cache
def _data() -> Json:
    text = files("kubectl_ghost.data").joinpath("telemetry.json").read_text(encoding="utf-8")
    data: Json = json.loads(text)
    return data


@cache
def board_figures(model_key: str) -> BoardFigures:
    """The figures of the model with exactly this catalogue key.

    Raises:
        InputError: if there is none, as catalogue.model does.
    """
    row = _data()["models"][model(model_key).key]
    idle_range = row["idle_range_w"]
    plain = set(BoardFigures.__dataclass_fields__) - {"idle_range_w", "unsourced"}
    return BoardFigures(
        idle_range_w=idle_range and tuple(idle_range),
        unsourced=frozenset(row["unsourced"]),
        **{name: row[name] for name in plain},
    )


@cache
def estimates() -> Estimates:
    """The ranges for figures that no source gives."""
    ranges = _data()["estimates"]
    return Estimates(**{name: tuple(ranges[name]) for name in Estimates.__dataclass_fields__})
