"""Splitting as a change of the declaration: whole or not at all, and twice is once."""

from dataclasses import replace

import pytest

from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.declaration_reading import decode
from kubectl_ghost.domain.errors import GhostError, InputError
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import MigConfig, MigMode, NodeHardware, Occupancy, Sharing, SharingKind
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.domain.splitting import (
    SplitRequest,
    answer_mig_request,
    configure_mig,
    fail_mig_request,
    resplit_gpus,
    split,
    split_as_asked,
    unsourced_figures,
)

HALVES = (MigInstance("3g.40gb", 0), MigInstance("3g.40gb", 4))
OFF = SplitRequest()


def node(model="h100", gpus=4, **request):
    return NodeHardware(configure("node", None, PoolRequest(model=model, gpus=gpus, **request)), 0)


def busy(hardware, index):
    return hardware.with_gpu(index, replace(hardware.gpu(index), occupancy=Occupancy()))


def layouts(hardware):
    return [
        None if state.mig is None else " ".join(map(str, state.mig))
        for state in map(hardware.gpu, range(hardware.settings.gpus))
    ]


def test_the_gpus_named_are_split_and_the_others_stay():
    done = split(node(), (0, 2), HALVES)
    assert layouts(done) == ["3g.40gb:0 3g.40gb:4", None, "3g.40gb:0 3g.40gb:4", None]
    assert done.mig_config == MigConfig("custom", "success")
    assert resplit_gpus(node(), done) == {0, 2}
    assert decode(encode(done), "node-0") == done


def test_the_order_of_the_instances_makes_no_difference():
    assert split(node(), (0,), HALVES) == split(node(), (0,), tuple(reversed(HALVES)))


@pytest.mark.parametrize("request_", [SplitRequest(profiles="1g.10gb*7"), SplitRequest(config="all-balanced"), OFF])
def test_twice_is_once(request_):
    for before in (node(), configure_mig(node(), "all-1g.10gb"), split(node(), (1,), HALVES)):
        once = split_as_asked(before, range(4), request_)
        assert split_as_asked(once, range(4), request_) == once


def test_off_on_some_leaves_a_layout_of_no_name_and_on_all_that_of_mig_parted():
    everywhere = configure_mig(node(), "all-1g.10gb")
    assert everywhere.mig_config == MigConfig("all-1g.10gb", "success")
    some = split(everywhere, (0,), None)
    assert some.mig_config == MigConfig("custom", "success")
    assert split(some, (1, 2, 3), None).mig_config == MigConfig("all-disabled", "success")


def test_nothing_to_switch_off_changes_nothing_at_all():
    assert split_as_asked(node(), range(4), OFF) == node()


def test_a_layout_that_is_there_keeps_its_name():
    done = configure_mig(node(), "all-3g.40gb")
    assert split_as_asked(done, (0, 1), SplitRequest(profiles="3g.40gb*2")) == done


def test_but_not_the_mark_of_a_failure():
    failed = fail_mig_request(node(), "all-9g.90gb")
    assert split_as_asked(failed, range(4), OFF).mig_config == MigConfig("all-disabled", "success")


def test_mig_mode_without_an_instance_is_a_layout_too():
    done = configure_mig(node(), "all-enabled")
    assert layouts(done) == ["", "", "", ""]
    assert decode(encode(done), "node-0") == done


def test_faults_stay_with_their_gpu():
    fault = Fault("xid", code=79, since="2026-01-01T00:00:00Z")
    broken = node().with_gpu(1, replace(node().gpu(1), faults=(fault,)))
    assert split(broken, (1,), HALVES).gpu(1).faults == (fault,)
    assert split(split(broken, (1,), HALVES), (1,), None).gpu(1) == broken.gpu(1)


def test_what_cannot_coexist_is_refused_with_the_gpu_and_both_slices():
    with pytest.raises(InputError, match=r"node-0/gpu-2: 4g.40gb:0 and 3g.40gb:0 both need memory slices 0-3"):
        split_as_asked(node(), (2, 3), SplitRequest(profiles="4g.40gb:0,3g.40gb:0"))
    with pytest.raises(InputError, match="both need"):
        split(node(), (2,), (MigInstance("4g.40gb", 0), MigInstance("3g.40gb", 0)))


@pytest.mark.parametrize("request_", [SplitRequest(profiles="1g.10gb"), SplitRequest(config="all-balanced"), OFF])
def test_models_without_mig_and_pools_of_dynamic_mig_are_refused(request_):
    with pytest.raises(GhostError, match=r'GPU model t4 of node "node-0" has no MIG') as refusal:
        split_as_asked(node("t4"), range(4), request_)
    assert "h100-sxm5-80gb" in refusal.value.hint
    with pytest.raises(GhostError, match='pool "node" has dynamic MIG: the scheduler chooses') as refusal:
        split_as_asked(node(mig=MigMode.DYNAMIC), range(4), request_)
    assert "--mig static" in refusal.value.hint


def test_a_configuration_is_for_whole_nodes():
    with pytest.raises(InputError, match=r'of node "node-0" only gpu-0, gpu-2 is named'):
        split_as_asked(node(), (0, 2), SplitRequest(config="all-balanced"))


def test_an_empty_list_of_profiles_is_not_off():
    with pytest.raises(InputError, match="invalid MIG profiles"):
        split_as_asked(node(), (0,), SplitRequest(profiles=""))


def test_a_busy_gpu_is_not_split_unless_forced_which_releases_it():
    held = busy(node(), 1)
    with pytest.raises(GhostError, match="node-0/gpu-1 is declared busy") as refusal:
        split(held, (0, 1), HALVES)
    assert refusal.value.hint == "Release it first with: kubectl ghost release node-0/gpu-1"
    assert split(held, (0, 1), HALVES, force=True).gpu(1).occupancy is None
    assert split(held, (0,), HALVES).gpu(1).occupancy is not None


def test_a_busy_gpu_that_has_the_layout_stays_busy():
    held = busy(split(node(), (1,), HALVES), 1)
    assert split(held, (1,), HALVES, force=True) == held


def test_gpus_shared_by_mps_are_not_split_but_time_slices_are():
    def shared(kind):
        return node(sharing=Sharing(kind, 4))

    with pytest.raises(GhostError, match='pool "node" shares its GPUs by MPS'):
        split(shared(SharingKind.MPS), (0,), HALVES)
    assert resplit_gpus(node(), split(shared(SharingKind.TIME_SLICING), (0,), HALVES)) == {0}


@pytest.mark.parametrize("name", ["all-balanced", "all-1g.10gb.me", "all-disabled", "all-enabled"])
def test_a_request_by_label_is_answered_with_success(name):
    answered = answer_mig_request(configure_mig(node(), "all-2g.20gb"), name)
    assert answered == configure_mig(node(), name)
    assert answered.mig_config == MigConfig(name, "success")


@pytest.mark.parametrize("name", ["all-9g.90gb", "custom", "", "all-1g.5gb"])
def test_an_unknown_one_fails_and_leaves_the_layout(name):
    before = configure_mig(node(), "all-2g.20gb")
    answered = answer_mig_request(before, name)
    assert answered.mig_config == MigConfig(name, "failed")
    assert answered.gpus == before.gpus


@pytest.mark.parametrize("before", [node("t4"), node(mig=MigMode.DYNAMIC), busy(node(), 3)])
def test_an_impossible_one_fails(before):
    assert answer_mig_request(before, "all-balanced") == fail_mig_request(before, "all-balanced")


def test_a_request_is_answered_once():
    failed = fail_mig_request(node(), "all-balanced")
    assert answer_mig_request(failed, "all-balanced") == failed


def test_figures_without_a_source_are_told_by_profile():
    assert unsourced_figures(configure_mig(node("b200"), "all-1g.23gb")) == {}
    assert unsourced_figures(configure_mig(node("b200"), "all-balanced")) == {
        "3g.90gb": ["multiprocessors", "decoders", "jpegEngines", "memory"]
    }
    assert unsourced_figures(node("t4")) == {}
