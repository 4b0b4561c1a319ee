"""A pool's new settings: what commands have done to a node stays as far as the hardware is the same."""

from dataclasses import replace

from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState, MigConfig, MigMode, NodeHardware, Occupancy
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.domain.resettling import dropped, with_settings

SETTINGS = configure("node", None, PoolRequest())
BROKEN, SPLIT = GpuState(faults=(Fault("xid", 79),)), GpuState(mig=(MigInstance("7g.80gb", 0),))
NODE = replace(
    NodeHardware(SETTINGS, 3).with_gpu(1, BROKEN).with_gpu(2, SPLIT).with_gpu(7, GpuState(occupancy=Occupancy())),
    mig_config=MigConfig("custom", "success"),
)


def test_labels_and_sizes_change_nothing_about_gpus():
    settings = replace(SETTINGS, cpu="1", labels=(("a", "b"),))
    assert with_settings(NODE, settings) == replace(NODE, settings=settings)


def test_what_was_done_to_gpus_that_go_goes_with_them():
    assert with_settings(NODE, replace(SETTINGS, gpus=4)).gpus == ((1, BROKEN), (2, SPLIT))


def test_other_boards_are_new():
    after = with_settings(NODE, replace(SETTINGS, model="b200"))
    assert after.gpus == ((7, GpuState(occupancy=Occupancy())),)
    assert after.mig_config is None


def test_another_mig_mode_drops_layouts_and_keeps_faults():
    part = GpuState(occupancy=Occupancy(instances=(MigInstance("1g.10gb", 0),)))
    after = with_settings(NODE.with_gpu(3, part), replace(SETTINGS, mig=MigMode.DYNAMIC))
    assert after.gpus == ((1, BROKEN), (7, GpuState(occupancy=Occupancy())))


def test_a_model_without_mig_has_no_mig_configuration():
    named = NodeHardware(SETTINGS, 0, mig_config=MigConfig("all-1g.10gb", "failed"))
    assert with_settings(named, replace(SETTINGS, model="t4")).mig_config is None
    assert with_settings(named, replace(SETTINGS, cpu="1")).mig_config == named.mig_config


def test_without_any_split_gpu_left_mig_is_off():
    split = replace(
        NodeHardware(SETTINGS, 0).with_gpu(7, SPLIT).with_gpu(0, BROKEN), mig_config=MigConfig("custom", "success")
    )
    assert with_settings(split, replace(SETTINGS, gpus=4)).mig_config == MigConfig("all-disabled", "success")
    assert with_settings(split.with_gpu(1, SPLIT), replace(SETTINGS, gpus=4)).mig_config == split.mig_config


def test_what_goes_is_told():
    assert dropped(NODE, with_settings(NODE, replace(SETTINGS, gpus=2))) == [
        "node-3/gpu-2 (MIG layout)",
        "node-3/gpu-7 (Occupied)",
    ]
    assert dropped(NODE, with_settings(NODE, replace(SETTINGS, model="b200"))) == [
        "node-3/gpu-1 (XID 79)",
        "node-3/gpu-2 (MIG layout)",
    ]
    assert dropped(NODE, with_settings(NODE, replace(SETTINGS, cpu="1"))) == []
