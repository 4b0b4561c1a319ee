"""Defaults, bounds, and what a second `add-pool` changes."""

import pytest

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.hardware import Advertise, MigMode, MigStrategy, Sharing, SharingKind, TaintMode
from kubectl_ghost.domain.pools import PoolRequest, check_pool, configure, default_cpu, default_memory

MPS, TIME_SLICED = Sharing(SharingKind.MPS, 4), Sharing(SharingKind.TIME_SLICING, 4, renamed=True)


def test_no_argument_at_all_is_eight_h100():
    settings = configure("node", None, PoolRequest())
    assert (settings.model, settings.gpus, settings.cpu, settings.memory, settings.pods) == (
        "h100-sxm5-80gb",
        8,
        "192",
        "2Ti",
        110,
    )
    assert settings.advertise is Advertise.BOTH
    assert settings.taint is TaintMode.AUTO


@pytest.mark.parametrize(("gpus", "cpu", "memory"), [(8, "192", "2Ti"), (4, "144", "960Gi"), (1, "36", "240Gi")])
def test_size_by_gpu_count(gpus, cpu, memory):
    assert (default_cpu(gpus), default_memory(gpus)) == (cpu, memory)


def test_more_gpus_never_mean_a_smaller_node():
    sizes = [int(default_cpu(gpus)) for gpus in range(1, 129)]
    assert sizes == sorted(sizes)


def test_a_second_time_keeps_what_is_not_given():
    first = configure("a", None, PoolRequest(model="b200", zones=("x",), pods=50))
    second = configure("a", first, PoolRequest(labels=(("team", "a"),)))
    assert second.model == "b200"
    assert second.zones == ("x",)
    assert second.pods == 50
    assert second.labels == (("team", "a"),)


def test_a_new_model_brings_its_own_defaults():
    first = configure("a", None, PoolRequest())
    second = configure("a", first, PoolRequest(model="t4"))
    assert (second.gpus, second.cpu, second.memory) == (4, "144", "960Gi")


def test_a_new_model_leaves_what_was_chosen():
    first = configure("a", None, PoolRequest(gpus=2, cpu="7", memory="9Gi"))
    second = configure("a", first, PoolRequest(model="t4"))
    assert (second.gpus, second.cpu, second.memory) == (2, "7", "9Gi")


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (PoolRequest(gpus=0), "--gpus-per-node 0"),
        (PoolRequest(gpus=129), "from 1 to 128"),
        (PoolRequest(pods=0), "--pods 0"),
        (PoolRequest(cpu="-1"), "--cpu"),
        (PoolRequest(cpu="0.0001"), "at least 1m"),
        (PoolRequest(memory="99999Ei"), "less than 8Ei"),
        (PoolRequest(cpu="many"), "'many' is no Kubernetes quantity"),
        (PoolRequest(memory="80"), "80 bytes"),
        (PoolRequest(memory="-5Gi"), "--memory"),
        (PoolRequest(model="voodoo"), "unknown GPU model"),
        (PoolRequest(zones=("a b",)), "--zones"),
        (PoolRequest(racks=("-",)), "--racks"),
        (PoolRequest(zones=("a", "a")), "names one twice"),
        (PoolRequest(zones=("a", "b"), racks=("r",)), "1 rack(s) cannot stand in 2 zones"),
        (PoolRequest(model="t4", mig=MigMode.DYNAMIC), "--mig dynamic needs GPUs with MIG, and t4 has none"),
        (PoolRequest(mig=MigMode.DYNAMIC, advertise=Advertise.DEVICE_PLUGIN), "--mig dynamic lives in ResourceSlices"),
        (PoolRequest(mig=MigMode.DYNAMIC, sharing=MPS), "--sharing mps and --mig dynamic do not go together"),
        (PoolRequest(advertise=Advertise.DRA, sharing=MPS), "--advertise dra counts none"),
        (PoolRequest(advertise=Advertise.DRA, sharing=TIME_SLICED), "--sharing time-slicing needs GPUs that are"),
    ],
)
def test_nonsense_is_refused_in_one_line(request_, words):
    with pytest.raises(InputError) as caught:
        configure("node", None, request_)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_mig_and_sharing_stay_until_something_else_is_said():
    first = configure("a", None, PoolRequest(mig_strategy=MigStrategy.SINGLE, sharing=TIME_SLICED))
    assert (first.mig, first.mig_strategy, first.sharing) == (MigMode.STATIC, MigStrategy.SINGLE, TIME_SLICED)
    kept = configure("a", first, PoolRequest(mig=MigMode.DYNAMIC))
    assert (kept.mig, kept.mig_strategy, kept.sharing) == (MigMode.DYNAMIC, MigStrategy.SINGLE, TIME_SLICED)
    assert configure("a", kept, PoolRequest(sharing="none")).sharing is None


def test_a_pool_of_dynamic_mig_cannot_become_one_without_mig():
    dynamic = configure("a", None, PoolRequest(mig=MigMode.DYNAMIC))
    with pytest.raises(InputError, match="l4 has none"):
        configure("a", dynamic, PoolRequest(model="l4"))
    assert configure("a", dynamic, PoolRequest(model="l4", mig=MigMode.STATIC)).mig is MigMode.STATIC


def test_memory_without_a_unit_gets_the_right_spelling():
    with pytest.raises(InputError) as caught:
        configure("node", None, PoolRequest(memory="80"))
    assert caught.value.hint == "Did you mean 80Gi?"


@pytest.mark.parametrize(("name", "count"), [("Node", 1), ("a_b", 1), ("-a", 1), ("", 1), ("a.b", 1), ("a" * 62, 11)])
def test_a_pool_name_is_a_dns_label_with_room_for_the_index(name, count):
    with pytest.raises(InputError, match="pool name"):
        check_pool(name, count)


@pytest.mark.parametrize("count", [0, -1, 100_001])
def test_a_pool_has_a_sensible_size(count):
    with pytest.raises(InputError, match="number of nodes"):
        check_pool("node", count)
