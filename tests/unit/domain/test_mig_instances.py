"""MIG instances as DCGM lists them: which there are, their numbers, and what each has of its GPU."""

import pytest

from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.devices import table_of
from kubectl_ghost.domain.hardware import MigMode, Occupancy
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.mig_instances import instance_figures, listed_devices
from kubectl_ghost.domain.mig_placement import layouts
from tests.unit.agent.kube import hardware, split

H100, A30 = "h100-sxm5-80gb", "a30"
MIG_MODELS = ["a30", "a100-sxm4-40gb", H100, "h200-sxm5", "b200", "gb300", "rtx-pro-6000-blackwell-server"]


def listed(declared, *used, index=0):
    mig_mode, devices = listed_devices(declared, index, used)
    return mig_mode, [device.name for device in devices]


def test_a_gpu_out_of_mig_mode_is_itself():
    assert listed(hardware(), "gpu-0") == (False, ["gpu-0"])


def test_a_split_gpu_is_its_instances_used_or_not():
    declared = hardware(states={1: split("1g.10gb:0", "3g.40gb:4")})
    assert listed(declared, index=1) == (True, ["gpu-1-mig-1g10gb-19-0", "gpu-1-mig-3g40gb-9-4"])
    assert listed(declared, index=0) == (False, ["gpu-0"])


def test_a_gpu_in_mig_mode_without_instances_is_itself():
    assert listed(hardware(states={0: split()})) == (True, ["gpu-0"])


def test_dynamic_instances_are_there_while_somebody_has_them():
    declared = hardware(mig=MigMode.DYNAMIC)
    assert listed(declared) == (False, ["gpu-0"])
    assert listed(declared, "gpu-0") == (False, ["gpu-0"])
    assert listed(declared, "gpu-0-mig-2g20gb-14-2", "gpu-1-mig-1g10gb-19-0") == (True, ["gpu-0-mig-2g20gb-14-2"])


def test_dynamic_instances_are_there_while_they_are_declared_busy():
    busy = split(occupancy=Occupancy(instances=(MigInstance("1g.10gb", 3),)))
    declared = hardware(states={0: busy}, mig=MigMode.DYNAMIC)
    assert listed(declared, "gpu-0-mig-1g10gb-19-0") == (True, ["gpu-0-mig-1g10gb-19-0", "gpu-0-mig-1g10gb-19-3"])


def test_an_ampere_gpu_that_is_split_on_demand_is_never_out_of_mig_mode():
    # To enter MIG mode it has to be reset, so the driver publishes its parts in MIG mode alone.
    assert listed(hardware(model=A30, mig=MigMode.DYNAMIC)) == (True, ["gpu-0"])


@pytest.mark.parametrize(
    ("profile", "start", "number"),
    [
        ("7g.80gb", 0, 0),
        ("3g.40gb", 0, 1),
        ("3g.40gb", 4, 2),
        ("4g.40gb", 0, 1),
        ("2g.20gb", 0, 3),
        ("2g.20gb", 4, 5),
        ("1g.10gb", 0, 7),
        ("1g.10gb", 6, 13),
    ],
)
def test_numbers_count_the_places_of_a_size_after_all_larger_ones(profile, start, number):
    assert instance_figures(H100, MigInstance(profile, start)).number == number


@pytest.mark.parametrize("key", MIG_MODELS)
def test_of_any_layout_no_two_instances_have_the_same_number_and_all_fit_into_their_gpu(key):
    for layout in layouts(table_of(key)):
        figures = [instance_figures(key, instance) for instance in layout]
        assert len({found.number for found in figures}) == len(layout)
        assert sum(found.share for found in figures) <= 1 + 1e-9
        assert sum(found.memory_share for found in figures) <= 1
        assert sum(found.memory_mib for found in figures) <= model(key).memory_mib
        assert all(found.memory_mib > 0 and found.share > 0 for found in figures)


def test_memory_is_that_of_the_profile():
    assert instance_figures(H100, MigInstance("1g.10gb", 0)).memory_mib == 9984
    assert instance_figures(A30, MigInstance("2g.12gb", 2)).memory_mib == 11968


def test_memory_that_no_source_gives_is_the_gpus_by_slices():
    assert table_of("b200").profile("3g.90gb").memory_mib is None
    assert instance_figures("b200", MigInstance("3g.90gb", 0)).memory_mib == 183359 // 2


def test_shares_are_of_slices():
    half = instance_figures(H100, MigInstance("3g.40gb", 0))
    assert (half.share, half.memory_share) == (3 / 7, 1 / 2)
    quarter = instance_figures(A30, MigInstance("1g.6gb", 0))
    assert (quarter.share, quarter.memory_share) == (1 / 4, 1 / 4)
