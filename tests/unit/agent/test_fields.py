"""Which fields there are, in which order, under which name and type, and how numbers are written."""

import re

import pytest

from ghost_agent.exporter_counters import EXPORTER_FIELDS
from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.dcgm_fields import all_fields, default_fields
from kubectl_ghost.domain.hardware import MigMode
from tests.unit.agent.kube import NOON, agent, broken, by_claim, hardware, node, scrape, split
from tests.unit.agent.series import UTIL, named, names, read, values

ENERGY, POWER = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_POWER_USAGE"
UTILISATION = {f"DCGM_FI_DEV_{name}_UTIL" for name in ("GPU", "MEM_COPY", "ENC", "DEC")}
REMAPPER = {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"}
REMAPPER |= {"DCGM_FI_DEV_ROW_REMAP_FAILURE"}
NVLINK = {name.name for name in all_fields() if name.group == "nvlink"}
FIRST = ("node-0", 0, "", "")


def test_by_default_there_are_25_series_in_the_order_of_their_ids():
    text = scrape(node(hardware(1)))
    series = [field.name for field in default_fields() if field.prom_type != "label"]
    assert names(text) == series
    assert len(series) == 25


def test_every_field_has_a_value_on_one_board_or_another():
    """Pages are retired where rows are not remapped: a T4 has those, an H100 all else."""
    series = {field.name for field in all_fields() if field.prom_type != "label"}
    retired = {name for name in series if "_RETIRED_" in name}
    assert len(retired) == 3
    assert set(names(scrape(node(hardware(2)), fields="all"))) == series - retired
    assert set(names(scrape(node(hardware(2, model="t4")), fields="all"))) == series - REMAPPER - NVLINK


def test_every_field_has_help_and_type_once_and_before_its_series():
    lines = scrape(node(hardware(2)), fields="all").splitlines()
    fields = {field.name: field for field in all_fields()}
    seen = []
    for number, line in enumerate(lines):
        if line.startswith("# HELP"):
            name = line.split()[2]
            seen.append(name)
            assert line == f"# HELP {name} {fields[name].help}"
            assert lines[number + 1] == f"# TYPE {name} {fields[name].prom_type}"
        elif not line.startswith("#"):
            assert line.startswith(f"{seen[-1]}{{")
    assert len(seen) == len(set(seen))
    assert [fields[name].field_id for name in seen] == sorted(fields[name].field_id for name in seen)


@pytest.mark.parametrize("key", model_keys())
def test_numbers_are_written_as_go_writes_them(key):
    holder, granted = by_claim("train", "gpu-0", annotations={"kubectl-ghost.dev/gpu-util": "12.5"})
    text = scrape(node(hardware(1, model=key)), holder, granted, fields="all")
    doubles = {field.name for field in all_fields() if field.value_type == "double"}
    for line in text.splitlines():
        if not line.startswith("#"):
            form = r"[0-9]+\.[0-9]{6}" if line.partition("{")[0] in doubles else "[0-9]+"
            assert re.fullmatch(form, line.rpartition(" ")[2]), line


def test_a_t4_has_no_remapper_and_no_nvlink_and_reports_no_memory_temperature_as_zero():
    text = scrape(node(hardware(1, model="t4")), *by_claim("infer", "gpu-0"), fields="all")
    assert not set(names(text)) & (REMAPPER | NVLINK)
    assert values(text, "DCGM_FI_DEV_MEMORY_TEMP") == {FIRST: 0}
    assert set(names(scrape(node(hardware(1)), fields="all"))) >= REMAPPER | NVLINK


@pytest.mark.parametrize(
    ("declared", "in_mig"),
    [
        (hardware(1), False),
        (hardware(1, states={0: split()}), True),
        (hardware(1, states={0: split("1g.10gb:0")}), True),
        (hardware(1, mig=MigMode.DYNAMIC), False),
        (hardware(1, model="a30", mig=MigMode.DYNAMIC), True),
    ],
    ids=["whole", "no instances", "an instance", "on demand", "on demand, Ampere"],
)
def test_there_is_no_utilisation_in_mig_mode(declared, in_mig):
    found = set(names(scrape(node(declared))))
    assert found & UTILISATION == (set() if in_mig else UTILISATION)
    assert found >= {field.name for field in default_fields() if field.prom_type != "label"} - UTILISATION


def test_instances_repeat_the_values_of_their_gpu_and_have_memory_and_engines_of_their_own():
    declared = hardware(1, states={0: split("1g.10gb:0", "3g.40gb:4")})
    text = scrape(node(declared), *by_claim("infer", "gpu-0-mig-1g10gb-19-0"), fields="all")
    own = {field.name for field in all_fields() if field.mig == "instance"} - {"DCGM_FI_DEV_XID_ERRORS"}
    for name in names(text):
        if name not in EXPORTER_FIELDS and name != "DCGM_FI_DEV_XID_ERRORS":
            assert (len(set(values(text, name).values())) == 2) is (name in own), name


def test_a_newer_name_is_printed_and_means_the_same():
    holder, granted = by_claim("train", "gpu-0")
    for old, new in (
        (UTIL, "DCGM_FI_DEV_GPU_UTIL_RATIO"),
        (POWER, "DCGM_FI_DEV_BOARD_POWER_WATTS"),
        ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR"),
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL"),
    ):
        classic = scrape(node(hardware(1)), holder, granted, fields=old)
        assert scrape(node(hardware(1)), holder, granted, fields=new) == classic.replace(old, new)


def test_label_fields_are_on_every_series_and_under_the_name_that_was_asked_for():
    text = scrape(node(hardware(1)), fields=f"{UTIL},DCGM_FI_SYSTEM_DRIVER_VERSION,DCGM_FI_DEV_BRAND")
    (series,) = read(text)
    assert series.labels["DCGM_FI_SYSTEM_DRIVER_VERSION"] == "580.105.08"
    assert series.labels["DCGM_FI_DEV_BRAND"] == "Nvidia"
    assert "DCGM_FI_DRIVER_VERSION" not in series.labels


def test_without_label_fields_there_are_no_such_labels():
    (series,) = read(scrape(node(hardware(1)), fields=UTIL))
    assert set(series.labels) == {"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname"}


def test_a_file_of_counters_decides_type_and_help_and_nothing_else():
    counters = f"{UTIL}, counter, Busy\n{ENERGY}, gauge, Energy\n"
    shown = agent(node(hardware(1)), *by_claim("train", "gpu-0"), counters=counters)
    text = shown.text()
    plain = agent(node(hardware(1)), *by_claim("train", "gpu-0"))
    plain.text()
    assert "# HELP DCGM_FI_DEV_GPU_UTIL Busy\n# TYPE DCGM_FI_DEV_GPU_UTIL counter\n" in text
    assert values(text, UTIL) == {FIRST: 85}
    assert f"# TYPE {ENERGY} gauge\n" in text
    assert values(shown.text(NOON + 60), ENERGY) == values(plain.text(NOON + 60), ENERGY)


def test_what_a_fault_counts_is_in_the_fields_that_are_asked_for():
    text = scrape(node(hardware(1, states={0: broken("row-remap-failure")})))
    assert values(text, "DCGM_FI_DEV_ROW_REMAP_FAILURE") == {FIRST: 1}
    assert values(text, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS") == {FIRST: 1}
    assert named(text, "DCGM_FI_DEV_XID_ERRORS")[0].value == 64
