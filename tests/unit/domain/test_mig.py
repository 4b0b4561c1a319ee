"""MIG: what can exist on a GPU together, for every model, and what the instances are called."""

import json
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from uuid import uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ghost.domain.catalogue import model, model_keys
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.identity import NAMESPACE, gpu_uuid, parent_gpu
from kubectl_ghost.domain.mig import CAPACITIES, MigInstance, device_name, maxima, mig_table, mig_uuid
from kubectl_ghost.domain.mig_placement import check_layout, layouts, place
from tests.layouts import is_maximal

RAW = json.loads(files("kubectl_ghost.data").joinpath("mig.json").read_text())
CATALOGUE = json.loads(files("kubectl_ghost.data").joinpath("gpu_models.json").read_text())
TABLES = {key: mig_table(key) for key in model_keys() if mig_table(key) is not None}
LAYOUTS = {key: list(layouts(table)) for key, table in TABLES.items()}
H100, A30, RTX = TABLES["h100-sxm5-80gb"], TABLES["a30"], TABLES["rtx-pro-6000-blackwell-server"]
PUBLISHED_COUNTS = {
    "h100-sxm5-80gb": {
        "1g.10gb": 7,
        "1g.10gb+me": 1,
        "1g.20gb": 4,
        "2g.20gb": 3,
        "3g.40gb": 2,
        "4g.40gb": 1,
        "7g.80gb": 1,
    },
    "a100-sxm4-40gb": {
        "1g.5gb": 7,
        "1g.5gb+me": 1,
        "1g.10gb": 4,
        "2g.10gb": 3,
        "3g.20gb": 2,
        "4g.20gb": 1,
        "7g.40gb": 1,
    },
    "b200": {"1g.23gb": 7, "1g.23gb+me": 1, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
    "a30": {"1g.6gb": 4, "1g.6gb+me": 1, "2g.12gb": 2, "2g.12gb+me": 1, "4g.24gb": 1},
}
"""Instances a profile in NVIDIA's MIG User Guide, written down apart from the catalogue."""


def instances(text):
    """`3g.40gb:4 1g.10gb:0` as instances."""
    return tuple(MigInstance(name, int(start)) for name, start in (word.rsplit(":", 1) for word in text.split()))


def every_place(table):
    return [MigInstance(profile.name, start) for profile in table.profiles for start in profile.starts]


def message(table, text):
    with pytest.raises(InputError) as caught:
        check_layout(table, instances(text), "gpu-3")
    return caught.value.message


def refusal(table, profiles, taken=""):
    with pytest.raises(InputError) as caught:
        place(table, profiles, instances(taken), "gpu-3")
    return caught.value.message


def test_exactly_the_capable_models_have_a_table():
    assert list(TABLES) == [key for key in model_keys() if model(key).mig_capable]
    assert set(RAW["models"]) == set(TABLES)
    assert set(RAW["models"].values()) == set(RAW["tables"])
    assert mig_table("t4") is None


@pytest.mark.parametrize("row", RAW["tables"].values(), ids=list(RAW["tables"]))
def test_every_profile_names_its_sources(row):
    assert set(RAW["sources"].items()) <= set(CATALOGUE["sources"].items())
    for profile in row["profiles"]:
        assert profile["source"]
        assert set(profile["source"]) <= set(RAW["sources"])
        assert set(row["unsourced"]) <= set(profile)


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_profiles_stay_inside_the_gpu(table):
    assert table.memory_slices == {7: 8, 4: 4}[table.compute_slices]
    assert len({profile.gi_profile_id for profile in table.profiles}) == len(table.profiles)
    for profile in table.profiles:
        assert profile.name.startswith(f"{profile.compute_slices}g.")
        assert profile.starts == tuple(sorted(set(profile.starts)))
        assert profile.starts[-1] + profile.size <= table.memory_slices
        assert profile.max_instances <= len(profile.starts)
        assert profile.memory_mib is None or profile.memory_mib < model(table.model).memory_mib


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_every_layout_once_and_legal(table):
    """2,318 on a GPU of seven slices, whatever its figures; on those of four it depends on the engines."""
    expected = {"a30": 75, "rtx-pro-6000-blackwell-server": 716}.get(table.model, 2318)
    found = LAYOUTS[table.model]
    assert len(found) == expected
    assert len(set(map(frozenset, found))) == expected
    for layout in found:
        check_layout(table, layout)
        assert [instance.start for instance in layout] == sorted(instance.start for instance in layout)


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_one_step_past_a_layout_is_another_layout_or_refused(table):
    """Each layout with each further instance; all of them where the rules differ, else a share of the layouts."""
    legal = set(map(frozenset, LAYOUTS[table.model]))
    maximal = 0
    for layout in LAYOUTS[table.model][:: 1 if table in (H100, A30, RTX) else 29]:
        further = [instance for instance in every_place(table) if {*layout, instance} not in legal]
        for instance in [*further, *layout]:
            with pytest.raises(InputError):
                check_layout(table, (*layout, instance))
        fits = [instance for instance in every_place(table) if instance not in layout and instance not in further]
        assert is_maximal(table, layout) == (not fits)
        maximal += not fits
    if table in (H100, A30, RTX):
        assert maximal == {H100: 239, A30: 17, RTX: 302}[table]


def test_tables_of_seven_slices_have_one_shape():
    """So that what is checked in full for one of them holds for all."""
    shapes = {
        tuple(
            (profile.gi_profile_id, profile.starts, profile.size, profile.max_instances) for profile in table.profiles
        )
        for table in TABLES.values()
        if table.compute_slices == 7
    }
    assert len(shapes) == 1


@pytest.mark.parametrize("key", PUBLISHED_COUNTS)
def test_instance_counts_are_the_published_ones(key):
    assert {profile.name: profile.max_instances for profile in TABLES[key].profiles} == PUBLISHED_COUNTS[key]


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_so_many_instances_and_not_one_more(table):
    for profile in table.profiles:
        full = place(table, [profile.name] * profile.max_instances)
        assert len(set(full)) == profile.max_instances
        check_layout(table, full)
        assert profile.name in refusal(table, [profile.name] * (profile.max_instances + 1))


@pytest.mark.parametrize(
    ("table", "text", "words"),
    [
        (H100, "3g.40gb:4 2g.20gb:4", "gpu-3: 3g.40gb:4 and 2g.20gb:4 both need memory slices 4-5"),
        (H100, "1g.20gb:6 1g.10gb:6", "gpu-3: 1g.20gb:6 and 1g.10gb:6 both need memory slice 6"),
        (H100, "1g.10gb:0 1g.10gb:0", "gpu-3: 1g.10gb:0 and 1g.10gb:0 both need memory slice 0"),
        (H100, "3g.40gb:2", "gpu-3: 3g.40gb cannot start at memory slice 2"),
        (H100, "1g.10gb:7", "gpu-3: 1g.10gb cannot start at memory slice 7"),
        (H100, "1g.10gb+me:0 1g.10gb+me:1", "gpu-3: h100-sxm5-80gb has at most 1 of 1g.10gb+me"),
        (
            A30,
            "1g.6gb+me:0 2g.12gb:2 1g.6gb:1 2g.12gb+me:0",
            "gpu-3: 1g.6gb+me:0 and 2g.12gb+me:0 both need memory slice 0",
        ),
        (
            A30,
            "1g.6gb:1 1g.6gb+me:0 2g.12gb+me:2",
            "gpu-3: not enough JPEG engines for 2g.12gb+me (1 needed, 1 of 1 in 1g.6gb+me:0)",
        ),
        (
            RTX,
            "1g.24gb+me.all:0 1g.24gb-me:1 1g.24gb:2",
            "gpu-3: not enough decoders for 1g.24gb (1 needed, 4 of 4 in 1g.24gb+me.all:0)",
        ),
        (H100, "1g.5gb:0", 'unknown MIG profile "1g.5gb"'),
    ],
)
def test_what_clashes_is_named(table, text, words):
    assert message(table, text) == words


def test_starts_are_offered():
    with pytest.raises(InputError) as caught:
        check_layout(H100, instances("3g.40gb:2"))
    assert caught.value.hint == "3g.40gb starts at 0 or 4."


def test_a_figure_without_source_is_not_counted():
    assert maxima(H100) == {
        "multiprocessors": 132,
        "copyEngines": 8,
        "decoders": 7,
        "encoders": 0,
        "jpegEngines": 7,
        "ofaEngines": 1,
        "memory": 81152,
    }
    assert list(maxima(H100)) == list(CAPACITIES) == list(H100.profiles[0].capacities)
    uncounted = {key: {name for name, most in maxima(table).items() if most is None} for key, table in TABLES.items()}
    assert uncounted["b300"] == {"multiprocessors", "copyEngines", "decoders", "jpegEngines", "memory"}
    assert uncounted["h100-pcie-80gb"] == {"multiprocessors"}
    assert uncounted["a30"] == set()


def test_instances_are_limited_where_no_engine_can_be_counted():
    profiles = tuple(replace(profile, jpeg_engines=None, ofa_engines=None) for profile in A30.profiles)
    table = replace(A30, profiles=profiles)
    check_layout(table, instances("1g.6gb+me:0 2g.12gb+me:2"))
    assert message(table, "1g.6gb+me:0 1g.6gb+me:1") == "gpu-3: a30 has at most 1 of 1g.6gb+me"


@pytest.mark.parametrize(
    ("profiles", "taken", "starts"),
    [
        (["3g.40gb", "3g.40gb"], "", [4, 0]),
        (["4g.40gb", "2g.20gb", "1g.10gb"], "", [0, 4, 6]),
        (["1g.10gb", "2g.20gb", "4g.40gb"], "", [6, 4, 0]),
        (["1g.10gb"], "", [6]),
        (["3g.40gb"], "1g.10gb:5", [0]),
        (["1g.10gb", "1g.10gb"], "3g.40gb:4 1g.10gb:2", [3, 1]),
        # Highest first alone would leave the last pair of slices broken.
        (["1g.20gb", "2g.20gb", "2g.20gb", "2g.20gb"], "", [6, 4, 2, 0]),
        ([], "3g.40gb:4", []),
    ],
)
def test_places_are_those_the_driver_chooses(profiles, taken, starts):
    found = place(H100, profiles, instances(taken))
    assert [instance.profile for instance in found] == profiles
    assert [instance.start for instance in found] == starts


@pytest.mark.parametrize(
    ("table", "profiles", "taken", "words"),
    [
        (
            H100,
            ["1g.10gb", "3g.40gb", "4g.40gb"],
            "",
            "gpu-3: no room for 1g.10gb: 4g.40gb:0 holds memory slices 0-3, 3g.40gb:4 holds memory slices 4-7",
        ),
        (
            # Of the two ways to begin, the one that gets farther is told.
            H100,
            ["3g.40gb", "2g.20gb", "2g.20gb", "2g.20gb"],
            "",
            "gpu-3: no room for 2g.20gb: 2g.20gb:0 holds memory slices 0-1, 2g.20gb:2 holds memory slices 2-3, "
            "3g.40gb:4 holds memory slices 4-7",
        ),
        (H100, ["4g.40gb"], "3g.40gb:4 1g.10gb:3", "gpu-3: no room for 4g.40gb: 1g.10gb:3 holds memory slice 3"),
        (
            H100,
            ["1g.10gb+me"],
            "1g.10gb+me:0",
            "gpu-3: no room for 1g.10gb+me: h100-sxm5-80gb has at most 1 of 1g.10gb+me",
        ),
        (
            A30,
            ["1g.6gb+me"],
            "2g.12gb+me:2",
            "gpu-3: no room for 1g.6gb+me: not enough JPEG engines for 1g.6gb+me (1 needed, 1 of 1 in 2g.12gb+me:2)",
        ),
        (H100, ["1g.10gb"], "3g.40gb:4 2g.20gb:4", "gpu-3: 3g.40gb:4 and 2g.20gb:4 both need memory slices 4-5"),
    ],
)
def test_what_stands_in_the_way_is_named(table, profiles, taken, words):
    assert refusal(table, profiles, taken) == words


@pytest.mark.parametrize("table", [H100, A30, RTX], ids=lambda table: table.model)
def test_the_profiles_of_every_layout_find_room(table):
    multisets = {tuple(sorted(instance.profile for instance in layout)) for layout in LAYOUTS[table.model]}
    for profiles in multisets:
        found = place(table, profiles)
        check_layout(table, found)
        assert tuple(instance.profile for instance in found) == profiles


@pytest.mark.parametrize("table", [H100, A30, RTX], ids=lambda table: table.model)
@given(data=st.data())
def test_a_place_is_found_exactly_where_there_is_one(table, data):
    taken = data.draw(st.sampled_from([(), *LAYOUTS[table.model]]))
    wanted = data.draw(st.lists(st.sampled_from([profile.name for profile in table.profiles]), min_size=1, max_size=4))
    counts = Counter(wanted)
    possible = any(
        Counter(instance.profile for instance in layout if instance not in taken) == counts
        for layout in LAYOUTS[table.model]
        if len(layout) == len(taken) + len(wanted) and set(taken) <= set(layout)
    )
    if possible:
        found = place(table, wanted, taken)
        check_layout(table, (*taken, *found))
        assert [instance.profile for instance in found] == wanted
    else:
        assert "no room for" in refusal(table, wanted, " ".join(map(str, taken)))


def test_profiles_are_found_in_any_case_and_with_a_dot_for_the_plus():
    assert H100.profile("1G.10GB.me").name == "1g.10gb+me"
    assert RTX.profile(" 1g.24gb.me.all ").name == "1g.24gb+me.all"
    assert RTX.profile("1g.24gb-me").gi_profile_id == 67
    check_layout(H100, [MigInstance("1g.10gb.me", 3)])


def test_an_unknown_profile_names_the_nearest_and_all():
    with pytest.raises(InputError) as caught:
        H100.profile("3g.41gb")
    assert caught.value.hint == (
        "Did you mean 3g.40gb? h100-sxm5-80gb has 1g.10gb, 1g.10gb+me, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb."
    )


@pytest.mark.parametrize(
    ("table", "name", "resource", "device"),
    [
        (H100, "1g.10gb", "nvidia.com/mig-1g.10gb", "gpu-3-mig-1g10gb-19-0"),
        (H100, "1g.10gb+me", "nvidia.com/mig-1g.10gb.me", "gpu-3-mig-1g10gb-me-20-0"),
        (RTX, "1g.24gb+me", "nvidia.com/mig-1g.24gb.me", "gpu-3-mig-1g24gb-me-21-0"),
        (RTX, "1g.24gb-me", "nvidia.com/mig-1g.24gb-me", "gpu-3-mig-1g24gb-me-67-0"),
        (RTX, "1g.24gb+me.all", "nvidia.com/mig-1g.24gb.me.all", "gpu-3-mig-1g24gb-meall-65-0"),
    ],
)
def test_names_are_those_of_the_nvidia_stack(table, name, resource, device):
    profile = table.profile(name)
    assert profile.resource == resource
    assert device_name(3, profile, 0) == device


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_names_and_uuids_are_unique_on_a_gpu(table):
    places = every_place(table)
    devices = {device_name(0, table.profile(instance.profile), instance.start) for instance in places}
    uuids = {mig_uuid(gpu_uuid("node-0", gpu), place.profile, place.start) for gpu in range(8) for place in places}
    assert len(devices) == len(places)
    assert len(uuids) == 8 * len(places)
    assert {parent_gpu(device) for device in devices} == {"gpu-0"}
    assert len({profile.resource for profile in table.profiles}) == len(table.profiles)


def test_the_parent_of_a_whole_gpu_is_itself():
    assert parent_gpu("gpu-12") == "gpu-12"
    assert parent_gpu("gpu-12-mig-3g40gb-9-4") == "gpu-12"


@given(st.integers(0, 127), st.sampled_from(every_place(RTX)))
def test_mig_uuids_are_of_version_5(index, instance):
    parent = gpu_uuid("node-0", index)
    expected = uuid5(NAMESPACE, f"{parent}-{instance.profile}-{instance.start}")
    assert mig_uuid(parent, instance.profile, instance.start) == f"MIG-{expected}"


def test_mig_uuids_never_change():
    # Written down: dashboards and tests of users refer to them.
    assert mig_uuid(gpu_uuid("node-0", 0), "1g.10gb", 0) == "MIG-03f21a24-9e1e-52a1-9c49-9dcedb339ebe"
