"""The fields of a scrape: dcgm-exporter's own, chosen by group, by name or by a file in its format."""

import json
from dataclasses import replace
from importlib.resources import files

import pytest

from kubectl_ghost.domain.dcgm_fields import (
    Field,
    MigBehaviour,
    all_fields,
    default_fields,
    group_names,
    parse_counters,
    select_fields,
)
from kubectl_ghost.domain.errors import InputError

RAW = json.loads(files("kubectl_ghost.data").joinpath("dcgm_fields.json").read_text())

ENABLED = """\
# Clocks
DCGM_FI_DEV_SM_CLOCK,  gauge, SM clock frequency (in MHz).
DCGM_FI_DEV_MEM_CLOCK, gauge, Memory clock frequency (in MHz).

DCGM_FI_DEV_MEMORY_TEMP, gauge, Memory temperature (in C).
DCGM_FI_DEV_GPU_TEMP,    gauge, GPU temperature (in C).
DCGM_FI_DEV_POWER_USAGE,              gauge, Power draw (in W).
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Total energy consumption since boot (in mJ).
# DCGM_FI_PROF_PCIE_TX_BYTES,  counter, Total number of bytes transmitted through PCIe TX via NVML.
DCGM_FI_DEV_PCIE_REPLAY_COUNTER, counter, Total number of PCIe retries.
DCGM_FI_DEV_GPU_UTIL,      gauge, GPU utilization (in %).
DCGM_FI_DEV_MEM_COPY_UTIL, gauge, Memory utilization (in %).
DCGM_FI_DEV_ENC_UTIL,      gauge, Encoder utilization (in %).
DCGM_FI_DEV_DEC_UTIL ,     gauge, Decoder utilization (in %).
DCGM_FI_DEV_XID_ERRORS,              gauge,   Value of the last XID error encountered.
DCGM_FI_DEV_FB_FREE, gauge, Framebuffer memory free (in MiB).
DCGM_FI_DEV_FB_USED, gauge, Framebuffer memory used (in MiB).
DCGM_FI_DEV_FB_RESERVED, gauge, Framebuffer memory reserved (in MiB).
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL,            counter, Total number of NVLink bandwidth counters for all lanes.
DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, vGPU License status
DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS, counter, Number of remapped rows for uncorrectable errors
DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS,   counter, Number of remapped rows for correctable errors
DCGM_FI_DEV_ROW_REMAP_FAILURE,           gauge,   Whether remapping of rows has failed
DCGM_FI_DRIVER_VERSION,        label, Driver Version
DCGM_FI_PROF_GR_ENGINE_ACTIVE,   gauge, Ratio of time the graphics engine is active.
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, Ratio of cycles the tensor (HMMA) pipe is active.
DCGM_FI_PROF_DRAM_ACTIVE,        gauge, Ratio of cycles the device memory interface is active sending or receiving data.
DCGM_FI_PROF_PCIE_TX_BYTES,      gauge, The rate of data transmitted over the PCIe bus - including both protocol \
headers and data payloads - in bytes per second.
DCGM_FI_PROF_PCIE_RX_BYTES,      gauge, The rate of data received over the PCIe bus - including both protocol \
headers and data payloads - in bytes per second.
"""
"""The enabled lines of dcgm-exporter's default-counters.csv, with its blanks."""


def ids(fields: tuple[Field, ...]) -> list[int]:
    return [field.field_id for field in fields]


def names(fields: tuple[Field, ...]) -> list[str]:
    return [field.name for field in fields]


def only(name: str) -> Field:
    [field] = select_fields(name)
    return field


def refusal(text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_counters(text)
    return caught.value


def test_every_column_names_its_source():
    columns = set().union(*RAW["fields"])
    assert columns == set(RAW["columns"])
    assert {tag for tags in RAW["columns"].values() for tag in tags} <= set(RAW["sources"])


def test_the_catalogue_is_complete_and_unambiguous():
    fields = all_fields()
    assert len(fields) == 61
    assert len(set(ids(fields))) == 61
    every_name = [*names(fields), *(row["alias"] for row in RAW["fields"] if "alias" in row)]
    assert len(set(every_name)) == len(every_name)
    assert {field.prom_type for field in fields} == {"gauge", "counter", "label"}
    assert {field.value_type for field in fields if field.prom_type == "label"} == {"string"}
    assert {field.value_type for field in fields if field.prom_type != "label"} == {"int64", "double"}


def test_the_default_is_what_dcgm_exporter_enables():
    assert parse_counters(ENABLED) == default_fields()
    assert ids(default_fields()) == [
        *(1, 100, 101, 140, 150, 155, 156, 202, 203, 204, 206, 207, 230),
        *(251, 252, 253, 393, 394, 395, 449, 526, 1001, 1004, 1005, 1009, 1010),
    ]
    assert all(field.default for field in default_fields())
    assert [field.name for field in default_fields() if field.prom_type == "label"] == ["DCGM_FI_DRIVER_VERSION"]


def test_the_order_of_the_catalogue_is_that_of_the_file():
    in_file = [line.split(",")[0].strip() for line in ENABLED.splitlines() if line.startswith("DCGM")]
    assert [field.name for field in all_fields() if field.default] == in_file


@pytest.mark.parametrize(
    ("name", "field_id", "prom_type", "text"),
    [
        ("DCGM_FI_DEV_POWER_VIOLATION", 240, "counter", "Throttling duration due to power constraints (in ns)."),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 311, "counter", "Total number of double-bit volatile ECC errors."),
        ("DCGM_FI_DEV_RETIRED_PENDING", 392, "counter", "Total number of pages pending retirement."),
        ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 429, "counter", "Total number of NVLink retries."),
        ("DCGM_FI_PROF_SM_ACTIVE", 1002, "gauge", "The ratio of cycles an SM has at least 1 warp assigned."),
        ("DCGM_FI_DEV_VBIOS_VERSION", 85, "label", "VBIOS version of the device"),
        ("DCGM_EXP_XID_ERRORS_COUNT", 9001, "counter", "reported XIDs during last window"),
        ("DCGM_EXP_CLOCK_EVENTS_COUNT", 9002, "counter", "reported clock events"),
        ("DCGM_EXP_GPU_HEALTH_STATUS", 9003, "counter", "DCGM reported health status"),
        ("DCGM_EXP_P2P_STATUS", 9004, "counter", "P2P NvLink status"),
    ],
)
def test_optional_fields(name, field_id, prom_type, text):
    field = only(name)
    assert (field.field_id, field.prom_type, field.help, field.default) == (field_id, prom_type, text, False)


def test_what_a_gpu_in_mig_mode_shows():
    by_behaviour = {
        behaviour: {field.field_id for field in all_fields() if field.mig is behaviour} for behaviour in MigBehaviour
    }
    assert by_behaviour[MigBehaviour.ABSENT] == {203, 204, 206, 207}
    assert by_behaviour[MigBehaviour.INSTANCE] == {230, 251, 252, 253, *range(1001, 1009)}
    assert {1, 100, 140, 150, 155, 156, 202, 393, 394, 395, 449, 526, 1009, 1010, 9001} <= by_behaviour["parent"]


def test_only_power_and_ratios_have_decimals():
    assert {field.field_id for field in all_fields() if field.value_type == "double"} == {155, *range(1001, 1009)}


@pytest.mark.parametrize(
    ("group", "members"),
    [
        ("ecc", [310, 311, 312, 313]),
        ("retired-pages", [390, 391, 392]),
        ("violations", [240, 241, 242, 243, 244, 245]),
        ("xid-counts", [9001]),
        ("clock-events", [9002]),
        ("health", [9003]),
        ("p2p", [9004]),
        ("profiling", [1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010]),
        ("nvlink", [409, 419, 429, 439, 440, 449]),
        ("labels", [1, 2, 51, 53, 56, 80, 81, 82, 85]),
        ("memory", [251, 252, 253]),
        ("remapped-rows", [393, 394, 395]),
        ("clocks", [100, 101]),
        ("temperature", [140, 150]),
        ("power", [155, 156]),
        ("pcie", [202]),
        ("utilization", [203, 204, 206, 207]),
        ("xid", [230]),
        ("vgpu", [526]),
    ],
)
def test_groups(group, members):
    assert ids(select_fields(group)) == members
    assert group in group_names()


def test_the_groups_make_up_the_catalogue():
    assert group_names()[:2] == ["default", "all"]
    assert select_fields("default") == default_fields()
    assert ids(select_fields("all")) == sorted(ids(all_fields()))
    assert select_fields(",".join(group_names()[2:])) == select_fields("all")


def test_a_list_names_each_field_once_by_ascending_id():
    chosen = select_fields(" ecc, DCGM_EXP_P2P_STATUS,default ,DCGM_FI_DEV_ECC_SBE_VOL_TOTAL,,ECC")
    assert chosen == tuple(
        sorted(
            [*default_fields(), *select_fields("ecc"), only("DCGM_EXP_P2P_STATUS")], key=lambda field: field.field_id
        )
    )
    assert len(chosen) == 26 + 4 + 1


def test_a_field_is_printed_under_the_name_given():
    classic, renamed = only("DCGM_FI_DEV_GPU_UTIL"), only("DCGM_FI_DEV_GPU_UTIL_RATIO")
    assert renamed == replace(classic, name="DCGM_FI_DEV_GPU_UTIL_RATIO")
    assert "DCGM_FI_DEV_BOARD_POWER_WATTS" in names(select_fields("DCGM_FI_DEV_BOARD_POWER_WATTS,default"))
    mixed = select_fields("default,DCGM_FI_DEV_BOARD_POWER_WATTS,DCGM_FI_DEV_POWER_USAGE")
    assert "DCGM_FI_DEV_BOARD_POWER_WATTS" in names(mixed)
    assert ids(mixed) == ids(default_fields())


def test_names_are_understood_in_any_case():
    assert only("dcgm_fi_dev_gpu_util").name == "DCGM_FI_DEV_GPU_UTIL"
    assert select_fields("Default") == default_fields()


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("eec", "ecc"),
        ("clock-event", "clock-events"),
        ("DCGM_FI_DEV_GPU_UTILL", "DCGM_FI_DEV_GPU_UTIL"),
        ("DCGM_FI_DEV_BOARD_POWER_WATT", "DCGM_FI_DEV_BOARD_POWER_WATTS"),
    ],
)
def test_an_unknown_word_names_what_comes_near(word, near):
    with pytest.raises(InputError) as caught:
        select_fields(f"default,{word}")
    assert caught.value.message == f"unknown field or group of fields {word!r}"
    assert near in caught.value.hint.removeprefix("Did you mean one of: ").split(", ")


def test_an_unknown_word_like_nothing_names_the_groups():
    with pytest.raises(InputError) as caught:
        select_fields("everything-else")
    assert caught.value.hint == f"The groups are: {', '.join(group_names())}"


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_a_list_that_names_nothing_is_refused(text):
    with pytest.raises(InputError) as caught:
        select_fields(text)
    assert caught.value.message == "no field is named"


def test_type_and_help_of_a_file_win():
    [field] = parse_counters("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL,gauge,ours\n")
    assert field == replace(only("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"), prom_type="gauge", help="ours")


def test_a_file_keeps_the_newer_names():
    [field] = parse_counters("DCGM_FI_DEV_GPU_TEMP_CELSIUS, gauge, GPU temperature")
    assert (field.name, field.field_id) == ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", 150)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('DCGM_FI_DEV_GPU_TEMP,gauge,"Warm, warmer, hot"', "Warm, warmer, hot"),
        ('DCGM_FI_DEV_GPU_TEMP,gauge,"the ""edge"" sensor"', 'the "edge" sensor'),
        ('"DCGM_FI_DEV_GPU_TEMP","gauge","plain"', "plain"),
        ("DCGM_FI_DEV_GPU_TEMP , gauge ,  # of degrees  ", "# of degrees"),
        ("DCGM_FI_DEV_GPU_TEMP,gauge,", ""),
        ("DCGM_FI_DEV_GPU_TEMP,gauge,50 % \\ °C", "50 % \\ °C"),
    ],
)
def test_the_help_of_a_line(line, text):
    [field] = parse_counters(line)
    assert (field.name, field.help) == ("DCGM_FI_DEV_GPU_TEMP", text)


def test_a_file_is_sorted_by_id_whatever_its_line_ends():
    text = "# ours\r\n\r\nDCGM_EXP_XID_ERRORS_COUNT, gauge, x\r\n  \r\n  # y\r\nDCGM_FI_DEV_SERIAL, label, z\r\n"
    fields = parse_counters(text)
    assert [(field.field_id, field.prom_type, field.help) for field in fields] == [
        (53, "label", "z"),
        (9001, "gauge", "x"),
    ]
    assert parse_counters(text.replace("\r\n", "\r")) == fields


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("DCGM_FI_DEV_GPU_TEMP, gauge", "line 3: it has 2 columns instead of 3"),
        ("DCGM_FI_DEV_GPU_TEMP", "line 3: it has 1 column instead of 3"),
        ("DCGM_FI_DEV_GPU_TEMP, gauge, warm, hot", "line 3: it has 4 columns instead of 3"),
        ('DCGM_FI_DEV_GPU_TEMP, gauge, "warm, hot"', "line 3: a quotation mark is out of place"),
        ('DCGM_FI_DEV_GPU_TEMP,gauge,"warm, hot', "line 3: a quotation mark is out of place"),
        ('DCGM_FI_DEV_GPU_TEMP,gauge,"warm" and hot', "line 3: a quotation mark is out of place"),
    ],
)
def test_a_malformed_line_is_refused_with_the_layout(line, message):
    error = refusal(f"# ours\n\n{line}\nDCGM_FI_DEV_SERIAL, label, z\n")
    assert error.message == message
    assert error.hint == (
        'Write it as dcgm-exporter reads it: NAME,gauge,help or, if the help has commas, NAME,gauge,"help, and more"'
    )


def test_a_field_beyond_the_catalogue_is_refused():
    error = refusal("DCGM_FI_DEV_SM_CLOCK, gauge, x\nDCGM_FI_DEV_FAN_SPEED, gauge, Fan speed.")
    assert error.message == 'line 2: the field "DCGM_FI_DEV_FAN_SPEED" is not simulated'
    assert error.hint.startswith("Comment the line out")
    assert refusal("no_such, gauge, x").hint == "Comment the line out."
    misspelt = refusal("DCGM_FI_DEV_GPU_TMP, gauge, x")
    assert misspelt.hint.startswith(
        "Comment the line out, or take another field. Did you mean one of: DCGM_FI_DEV_GPU_TEMP"
    )
    # dcgm-exporter takes names as they are.
    assert (
        refusal("dcgm_fi_dev_gpu_temp, gauge, x").message == 'line 1: the field "dcgm_fi_dev_gpu_temp" is not simulated'
    )


@pytest.mark.parametrize("kind", ["histogram", "summary", "Gauge", ""])
def test_a_type_that_no_series_here_can_have(kind):
    error = refusal(f"DCGM_FI_DEV_GPU_TEMP,{kind},x")
    assert error.message == f'line 1: DCGM_FI_DEV_GPU_TEMP cannot be of the type "{kind}"'
    assert error.hint == "Make it one of: gauge, counter, label"


def test_text_is_a_label_and_numbers_are_series():
    text = refusal("DCGM_FI_DEV_SERIAL, gauge, x")
    assert text.message == "line 1: DCGM_FI_DEV_SERIAL cannot be a gauge"
    assert text.hint == "Make it a label, as dcgm-exporter's own file does."
    number = refusal("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL, label, x")
    assert number.message == "line 1: DCGM_FI_DEV_ECC_SBE_VOL_TOTAL cannot be a label"
    assert number.hint == "Make it a counter, as dcgm-exporter's own file does."


def test_a_field_twice_is_refused_under_either_name():
    error = refusal("#\nDCGM_FI_DEV_GPU_UTIL,gauge,x\nDCGM_FI_DEV_SM_CLOCK,gauge,x\nDCGM_FI_DEV_GPU_UTIL_RATIO,gauge,x")
    assert error.message == "line 4: DCGM_FI_DEV_GPU_UTIL_RATIO is on line 2 already"
    assert error.hint == "Keep one of the two lines."


@pytest.mark.parametrize("text", ["", "\n\n", "# DCGM_FI_DEV_GPU_UTIL, gauge, x\n"])
def test_a_file_that_names_nothing_is_refused(text):
    assert refusal(text).message == "no line names a field"
