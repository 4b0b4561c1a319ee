"""What users write for a layout: lists of profiles and mig-parted's configuration names."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.mig import MigInstance, mig_table
from kubectl_ghost.domain.mig_layouts import config_names, layout_of, named_layout, parse_profiles
from kubectl_ghost.domain.mig_placement import check_layout

TABLES = {key: mig_table(key) for key in model_keys() if mig_table(key) is not None}
H100, A100_40, A30, RTX = (
    TABLES[key] for key in ("h100-sxm5-80gb", "a100-sxm4-40gb", "a30", "rtx-pro-6000-blackwell-server")
)


def text_of(layout):
    return " ".join(map(str, layout))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("7g.80gb", [("7g.80gb", None)]),
        ("3g.40gb,2g.20gb,1g.10gb*2", [("3g.40gb", None), ("2g.20gb", None), ("1g.10gb", None), ("1g.10gb", None)]),
        ("3g.40gb:4, 1g.10gb.me", [("3g.40gb", 4), ("1g.10gb+me", None)]),
        ("  1G.10GB * 2 ,\t2g.20gb : 4 ", [("1g.10gb", None), ("1g.10gb", None), ("2g.20gb", 4)]),
    ],
)
def test_spellings_people_use(text, wanted):
    assert parse_profiles(text, H100) == tuple(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ",",
        "1g.10gb,",
        "1g.10gb,,2g.20gb",
        "1g.10gb 2g.20gb",
        "3g.40gb:4*2",
        "1g.10gb*2*2",
        "1g.10gb*",
        "3g.40gb:",
        "3g.40gb:-4",
        "3g.40gb:1000",
        "1g.10gb*two",
        "1g.10gb*1.5",
        "1g.10gb*1000000000000",
        "1g.10gb*\u0662",
        "*2",
        ":4",
    ],
)
def test_anything_else_is_refused_with_the_right_spelling(text):
    with pytest.raises(InputError) as caught:
        parse_profiles(text, H100)
    assert caught.value.message == f'invalid MIG profiles "{text}"'
    assert "3g.40gb,2g.20gb,1g.10gb*2, or 3g.40gb:4" in caught.value.hint


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_the_spelling_offered_works_on_that_model(table):
    with pytest.raises(InputError) as caught:
        parse_profiles("", table)
    offered, placed = caught.value.hint.removeprefix("Write ").split(" for one ")[0].split(", or ")
    check_layout(table, layout_of(offered, table))
    assert text_of(layout_of(placed, table)) == placed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1g.10gb*8", 'invalid number of instances "1g.10gb*8"'),
        ("1g.10gb*0", 'invalid number of instances "1g.10gb*0"'),
        ("1g.5gb", 'unknown MIG profile "1g.5gb"'),
        ("3g.40gb:2", "gpu-3: 3g.40gb cannot start at memory slice 2"),
        ("3g.40gb:0,4g.40gb:0", "gpu-3: 3g.40gb:0 and 4g.40gb:0 both need memory slices 0-3"),
        ("4g.40gb,3g.40gb:0", "gpu-3: no room for 4g.40gb: 3g.40gb:0 holds memory slices 0-3"),
    ],
)
def test_what_is_impossible_is_said(text, words):
    with pytest.raises(InputError) as caught:
        layout_of(text, H100, "gpu-3")
    assert caught.value.message == words


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("3g.40gb,2g.20gb,1g.10gb*2", "1g.10gb:0 1g.10gb:1 2g.20gb:2 3g.40gb:4"),
        ("3g.40gb:0,2g.20gb,1g.10gb", "3g.40gb:0 2g.20gb:4 1g.10gb:6"),
        # What is placed by hand comes first, wherever it stands in the list.
        ("3g.40gb,1g.10gb:5", "3g.40gb:0 1g.10gb:5"),
    ],
)
def test_layouts_are_ordered_by_start(text, layout):
    assert text_of(layout_of(text, H100)) == layout


@given(st.lists(st.sampled_from(["1g.10gb", "2g.20gb", "1g.20gb", "3g.40gb", "4g.40gb"]), min_size=1, max_size=3))
def test_a_layout_written_out_is_read_as_itself(profiles):
    try:
        layout = layout_of(",".join(profiles), H100)
    except InputError:
        assert {"4g.40gb", "3g.40gb"} & set(profiles)
        return
    assert layout_of(",".join(map(str, reversed(layout))), H100) == layout


@pytest.mark.parametrize(
    ("table", "name", "layout"),
    [
        (H100, "all-enabled", ""),
        (H100, "all-balanced", "1g.10gb:0 1g.10gb:1 2g.20gb:2 3g.40gb:4"),
        (A100_40, "all-balanced", "1g.5gb:0 1g.5gb:1 2g.10gb:2 3g.20gb:4"),
        (A30, "all-balanced", "1g.6gb:0 1g.6gb:1 2g.12gb:2"),
        (RTX, "all-balanced", "1g.24gb:0 1g.24gb:1 2g.48gb:2"),
        (A100_40, "all-1g.10gb", "1g.10gb:0 1g.10gb:2 1g.10gb:4 1g.10gb:6"),
        (H100, "all-1g.10gb", " ".join(f"1g.10gb:{start}" for start in range(7))),
        (H100, "all-1g.10gb.me", "1g.10gb+me:6"),
        (H100, "all-7g.80gb", "7g.80gb:0"),
        (RTX, "all-1g.24gb.me.all", "1g.24gb+me.all:3"),
        (RTX, "all-1g.24gb-me", "1g.24gb-me:0 1g.24gb-me:1 1g.24gb-me:2 1g.24gb-me:3"),
    ],
)
def test_configurations_are_those_of_mig_parted(table, name, layout):
    assert text_of(named_layout(name, table)) == layout


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_every_configuration_is_a_layout(table):
    names = config_names(table)
    assert len(names) == len(set(names)) == 3 + len(table.profiles)
    for name in names:
        assert all(character.isalnum() or character in "-." for character in name)
        check_layout(table, named_layout(name, table) or ())


def test_balanced_takes_the_plain_profiles_with_the_least_memory():
    for table in TABLES.values():
        for instance in named_layout("all-balanced", table):
            profile = table.profile(instance.profile)
            assert instance.profile.endswith("gb")
            assert profile.size == {1: 1, 2: 2, 3: 4}[profile.compute_slices]


def test_balanced_is_plain_whatever_else_is_listed_first():
    backwards = replace(RTX, profiles=RTX.profiles[::-1])
    assert named_layout("all-balanced", backwards) == named_layout("all-balanced", RTX)


def test_disabled_is_no_mig_at_all():
    assert named_layout("all-disabled", H100) is None
    assert named_layout("all-disabled", None) is None
    assert config_names(None) == ["all-disabled"]


@pytest.mark.parametrize("name", ["all-1g.5gb", "all-1g.10gb+me", "ALL-BALANCED", "balanced", "", "all-"])
def test_an_unknown_configuration_lists_the_known(name):
    with pytest.raises(InputError) as caught:
        named_layout(name, H100)
    assert caught.value.message == f'unknown MIG configuration "{name}"'
    assert all(known in caught.value.hint for known in config_names(H100))


def test_a_model_without_mig_knows_disabled_alone():
    with pytest.raises(InputError) as caught:
        named_layout("all-balanced", None)
    assert caught.value.message == 'MIG configuration "all-balanced" needs a GPU with MIG'


def test_an_instance_prints_as_it_is_written():
    assert str(MigInstance("1g.10gb", 5)) == "1g.10gb:5"
