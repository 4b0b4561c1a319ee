"""The boards' figures: captured where a board was, sourced or owned up to, and consistent with the other catalogues."""

import json
from dataclasses import fields
from importlib.resources import files

import pytest

from kubectl_ghost.domain.board_figures import BoardFigures, Estimates, board_figures, estimates
from kubectl_ghost.domain.catalogue import model, model_keys
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.fault_catalogue import without_nvlink

RAW = json.loads(files("kubectl_ghost.data").joinpath("telemetry.json").read_text())
FIGURES = {field.name for field in fields(BoardFigures)} - {"unsourced"}


def test_every_model_has_figures():
    assert list(RAW["models"]) == model_keys()


@pytest.mark.parametrize("key", model_keys())
def test_every_figure_is_sourced_or_listed_as_unsourced(key):
    row = RAW["models"][key]
    assert set(row) == FIGURES | {"source", "unsourced"}
    assert set(row["source"]) <= set(RAW["sources"]) - {"CHOICE"}
    told = [name for names in row["source"].values() for name in names] + row["unsourced"]
    known = FIGURES if row["idle_range_w"] else FIGURES - {"idle_range_w"}
    assert sorted(told) == sorted(known)
    # Every choice follows a rule that is written down.
    assert set(row["unsourced"]) <= set(RAW["unsourced"])
    assert board_figures(key).unsourced == frozenset(row["unsourced"])


@pytest.mark.parametrize("block", ["unsourced", "estimates"])
def test_choices_are_marked(block):
    assert RAW[block]["source"] == ["CHOICE"]


@pytest.mark.parametrize("key", model_keys())
def test_figures_hold_together(key):
    board = board_figures(key)
    assert 0 < board.idle_power_w < board.power_limit_w / 2
    # T4, L4 and A10 idle in P0, at their full clock, as the captured T4 does.
    assert 0 < board.idle_sm_mhz <= board.max_sm_mhz
    assert 0 < board.idle_mem_mhz <= board.max_mem_mhz
    assert 0 < board.fb_reserved_mib < model(key).memory_mib / 20
    assert board.idle_temperature_c < board.busy_temperature_c < board.slowdown_temperature_c
    low, high = estimates().busy_temperature_c
    assert low <= board.busy_temperature_c <= high
    assert 3 <= board.pcie_gen <= 6


@pytest.mark.parametrize("key", model_keys())
def test_an_idle_board_lies_in_the_range_of_idle_boards(key):
    board = board_figures(key)
    if board.idle_range_w is not None:
        low, high = board.idle_range_w
        assert low <= board.idle_power_w <= high


def test_which_boards_have_a_range():
    assert {key: board_figures(key).idle_range_w for key in model_keys() if board_figures(key).idle_range_w} == {
        "h100-sxm5-80gb": (66.0, 72.0),
        "h200-sxm5": (73.0, 76.0),
        "b200": (140.0, 206.0),
        "gb200": (156.0, 172.0),
        "gb300": (172.0, 237.0),
    }


@pytest.mark.parametrize("key", model_keys())
def test_links_agree_with_the_catalogue_of_faults(key):
    board = board_figures(key)
    linked = key not in without_nvlink()
    assert (board.nvlink_links > 0, board.nvlink_mb_s > 0) == (linked, linked)


def test_what_boards_cannot_do():
    assert {key for key in model_keys() if not board_figures(key).row_remapper} == {"t4"}
    assert {key for key in model_keys() if not board_figures(key).memory_temperature} == {
        *("t4", "l4", "l40s", "a10", "a10g", "rtx-pro-6000-blackwell-server"),
    }


@pytest.mark.parametrize(
    ("key", "power", "sm", "memory", "reserved", "temperatures"),
    [
        ("t4", (33.51, 70.0), (1590, 1590), (5000, 5001), 448, (33, 93)),
        ("l40s", (66.16, 350.0), (2040, 2520), (9001, 9001), 609, (29, 90)),
        ("a100-sxm4-40gb", (49.68, 400.0), (210, 1410), (1215, 1215), 518, (33, 89)),
        ("h100-sxm5-80gb", (68.92, 700.0), (345, 1980), (2619, 2619), 480, (29, 89)),
        ("b200", (195.79, 1000.0), (120, 1965), (3996, 3996), 728, (39, 91)),
        ("gb200", (165.93, 1200.0), (120, 2062), (3996, 3996), 742, (27, 89)),
        ("gb300", (180.29, 1400.0), (120, 2070), (3996, 3996), 947, (38, 89)),
    ],
)
def test_captured_boards(key, power, sm, memory, reserved, temperatures):
    board = board_figures(key)
    assert (board.idle_power_w, board.power_limit_w) == power
    assert (board.idle_sm_mhz, board.max_sm_mhz) == sm
    assert (board.idle_mem_mhz, board.max_mem_mhz) == memory
    assert board.fb_reserved_mib == reserved
    assert (board.idle_temperature_c, board.slowdown_temperature_c) == temperatures
    assert board.unsourced == {"busy_temperature_c"}


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        ("l4", "t4", "l40s"),
        ("a10", "t4", "l40s"),
        ("a10g", "t4", "l40s"),
        ("rtx-pro-6000-blackwell-server", "t4", "l40s"),
        ("h100-pcie-80gb", "h100-sxm5-80gb", "b200"),
        ("h100-nvl", "h100-sxm5-80gb", "b200"),
        ("h200-sxm5", "h100-sxm5-80gb", "b200"),
        ("gh200-96gb", "h100-sxm5-80gb", "b200"),
        ("b300", "gb200", "gb300"),
    ],
)
def test_unknown_reserved_memory_lies_on_the_line_through_two_captured_boards(key, low, high):
    (x0, y0), (x1, y1) = [(model(name).memory_mib, board_figures(name).fb_reserved_mib) for name in (low, high)]
    expected = y0 + (model(key).memory_mib - x0) * (y1 - y0) / (x1 - x0)
    assert board_figures(key).fb_reserved_mib == round(expected)
    assert "fb_reserved_mib" in board_figures(key).unsourced


@pytest.mark.parametrize(
    ("key", "expected"),
    [("a100-pcie-40gb", 518), ("a100-sxm4-80gb", 618), ("a100-pcie-80gb", 618), ("a30", 478)],
)
def test_unknown_reserved_memory_of_ampere_starts_from_its_captured_board(key, expected):
    assert board_figures(key).fb_reserved_mib == expected
    assert "fb_reserved_mib" in board_figures(key).unsourced


@pytest.mark.parametrize(
    ("key", "links", "rate"),
    [
        ("t4", 0, 0),
        ("a30", 4, 25781),
        ("a100-sxm4-80gb", 12, 25781),
        ("h100-sxm5-80gb", 18, 26562),
        ("gb300", 18, 53125),
    ],
)
def test_links(key, links, rate):
    assert (board_figures(key).nvlink_links, board_figures(key).nvlink_mb_s) == (links, rate)


def test_ranges_of_estimates():
    assert estimates() == Estimates(
        busy_temperature_c=(55, 80),
        memory_over_gpu_c=(5, 15),
        tensor_active=(0.2, 0.6),
        idle_pcie_bytes_s=(100000, 1000000),
    )


def test_an_unknown_model_is_refused_as_in_the_catalogue():
    with pytest.raises(InputError) as caught:
        board_figures("h10")
    assert caught.value.message == 'unknown GPU model "h10"'
