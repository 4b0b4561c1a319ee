"""The catalogue: complete, sourced, and found by the names that people use."""

import json
from importlib.resources import files

import pytest

from kubectl_ghost.domain.catalogue import driver, find_model, model, model_keys
from kubectl_ghost.domain.errors import InputError

RAW = json.loads(files("kubectl_ghost.data").joinpath("gpu_models.json").read_text())


def test_all_models_are_there():
    assert len(model_keys()) == 20
    assert {"t4", "l40s", "a10g", "h100-sxm5-80gb", "gb300", "rtx-pro-6000-blackwell-server"} <= set(model_keys())


@pytest.mark.parametrize("key", model_keys())
def test_every_row_names_its_sources(key):
    row = RAW["models"][key]
    assert row["source"]
    assert set(row["source"]) <= set(RAW["sources"])
    assert set(row["unsourced"]) <= set(row)
    assert model(key).memory_mib > 0
    assert 1 <= model(key).gpus_per_node <= 8


@pytest.mark.parametrize("key", model_keys())
def test_a_board_has_slots_for_its_gpus(key):
    slots = model(key).slots
    assert len(set(slots)) == len(slots)
    # 8 GPUs of a 4-slot board go on in a second PCI domain; see identity.pci_addresses.
    assert model(key).gpus_per_node % len(slots) == 0


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("h100", "h100-sxm5-80gb"),
        ("H100", "h100-sxm5-80gb"),
        ("a100", "a100-sxm4-80gb"),
        ("NVIDIA-H100-NVL", "h100-nvl"),
        ("Tesla T4", "t4"),
        ("gb200", "gb200"),
    ],
)
def test_names_people_use(name, key):
    assert find_model(name).key == key


def test_an_unknown_model_names_the_nearest():
    with pytest.raises(InputError) as caught:
        find_model("h10")
    assert caught.value.message == 'unknown GPU model "h10"'
    assert "h100" in caught.value.hint
    assert "t4" not in caught.value.hint


def test_family_follows_compute_capability():
    families = {"7.5": "turing", "8.0": "ampere", "8.6": "ampere", "8.9": "ada-lovelace", "9.0": "hopper"}
    for key in model_keys():
        board = model(key)
        assert board.family == families.get(board.compute_capability, "blackwell")


def test_driver_version_has_three_parts():
    assert len(driver().version.split(".")) == 3
