"""Which GPUs become busy: the same wish on the same fleet, the same GPUs, and nothing once it is fulfilled."""

from dataclasses import replace

import pytest

from kubectl_ghost.domain.errors import GhostError, InputError
from kubectl_ghost.domain.faults import Fault, Reactor
from kubectl_ghost.domain.hardware import GpuState, MigMode, NodeHardware, Occupancy, OccupancyKind
from kubectl_ghost.domain.holders import Holder
from kubectl_ghost.domain.keys import FILLER_NAMESPACE
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.occupancy import (
    Choice,
    Gpu,
    broken_gpus,
    by_node,
    choose_at_random,
    choose_free,
    choose_named,
    choose_share,
    look_at,
    occupied,
)
from kubectl_ghost.domain.partial_occupancy import choose_parts, without_room
from kubectl_ghost.domain.pools import PoolRequest, configure

BUSY, BY_PODS = Occupancy(), Occupancy(OccupancyKind.PODS)
POD, OTHER = ("default", "a"), ("default", "b")


def gpus(number=4, node="node-0", *, busy=(), broken=(), **held):
    """GPUs of a node; `gpu2=[POD]` is one that is held."""
    return [
        Gpu(
            node,
            index,
            BUSY if index in busy else None,
            frozenset(held.get(f"gpu{index}", ())),
            index in broken,
        )
        for index in range(number)
    ]


def indices(found):
    return [gpu.index for gpu in found]


def after(nodes, choice):
    """The same GPUs once the choice is declared, and its pods are gone."""
    busy, freed = [{(gpu.node, gpu.index) for gpu in found} for found in (choice.busy, choice.freed)]

    def changed(gpu):
        occupancy = BUSY if (gpu.node, gpu.index) in busy else None if (gpu.node, gpu.index) in freed else gpu.occupancy
        return replace(gpu, occupancy=occupancy, holders=gpu.holders - choice.in_the_way)

    return [(name, [changed(gpu) for gpu in found]) for name, found in nodes]


def test_so_many_gpus_stay_free_and_the_lowest_become_busy():
    nodes = [(f"node-{index}", gpus(node=f"node-{index}")) for index in range(4)]
    choice = choose_free(nodes, (2, 2, 2, 1))
    assert [(gpu.node, gpu.index) for gpu in choice.busy] == [
        *(("node-0", 0), ("node-0", 1), ("node-1", 0), ("node-1", 1)),
        *(("node-2", 0), ("node-2", 1), ("node-3", 0), ("node-3", 1), ("node-3", 2)),
    ]
    assert (choice.freed, choice.in_the_way) == ((), frozenset())


@pytest.mark.parametrize(
    ("now", "number", "busy", "freed"),
    [
        (gpus(busy=[0, 1]), 2, [0, 1], []),
        (gpus(busy=[0, 1]), 1, [0, 1, 2], []),
        (gpus(busy=[0, 1]), 3, [0], [1]),
        (gpus(busy=[0, 1]), 4, [], [0, 1]),
        (gpus(busy=[3]), 2, [0, 3], []),
        (gpus(gpu0=[POD]), 2, [1], []),
        (gpus(gpu0=[POD], busy=[1, 2]), 3, [], [1, 2]),
        (gpus(broken=[0]), 2, [1], []),
        (gpus(broken=[1], gpu0=[POD]), 2, [], []),
        (gpus(broken=[0], busy=[0, 1]), 3, [], [1]),
    ],
)
def test_free_counts_what_pods_could_have_and_keeps_what_is_busy(now, number, busy, freed):
    choice = choose_free([("node-0", now)], (number,))
    assert (sorted(indices(choice.busy)), sorted(indices(choice.freed))) == (busy, freed)
    assert choice.in_the_way == frozenset()
    [(_, then)] = after([("node-0", now)], choice)
    assert sum(gpu.free for gpu in then) == number
    again = choose_free([("node-0", then)], (number,))
    assert (set(indices(again.busy)), again.freed) == (set(busy), ())


def test_pods_that_hold_too_much_are_named_the_last_first_and_all_that_they_leave_is_dealt_out():
    now = gpus(gpu0=[POD], gpu2=[OTHER], gpu3=[OTHER])
    choice = choose_free([("node-0", now)], (2,))
    assert choice.in_the_way == {OTHER}
    assert indices(choice.busy) == [1]
    assert choose_free([("node-0", now)], (1,)) == Choice()
    assert choose_free([("node-0", now)], (4,)).in_the_way == {POD, OTHER}


def test_as_many_numbers_as_nodes():
    nodes = [("node-0", gpus()), ("node-1", gpus(node="node-1"))]
    for numbers in ((2,), (2, 2, 2)):
        with pytest.raises(InputError, match=rf"--free has {len(numbers)} number\(s\) for 2 node\(s\)"):
            choose_free(nodes, numbers)


def test_no_more_can_be_free_than_there_are_or_faults_leave():
    with pytest.raises(InputError, match='5 GPUs of node "node-0" cannot be free: it has 4'):
        choose_free([("node-0", gpus())], (5,))
    with pytest.raises(GhostError, match="faults leave 3 of 4"):
        choose_free([("node-0", gpus(broken=[2]))], (4,))


@pytest.mark.parametrize(("percent", "busy"), [(0, 0), (50, 8), (60, 10), (70, 11), (100, 16)])
def test_a_share_of_all_gpus_is_busy_with_those_that_are_held(percent, busy):
    now = gpus(16, gpu3=[POD], gpu4=[POD], gpu9=[POD])
    if percent == 0:
        assert choose_share(now, percent, 7).in_the_way == {POD}
        return
    choice = choose_share(now, percent, 7)
    assert len(choice.busy) == busy - 3
    assert not {3, 4, 9} & set(indices(choice.busy))


def test_a_share_is_drawn_by_its_seed_whatever_was_busy_before():
    now = [("x", gpus(40))]
    first = choose_share(now[0][1], 60, 7)
    [(_, then)] = after(now, first)
    again = choose_share(then, 60, 7)
    assert (set(indices(again.busy)), again.freed) == (set(indices(first.busy)), ())
    other = choose_share(then, 60, 8)
    assert len(other.busy) == 24
    assert set(indices(other.busy)) != set(indices(first.busy))
    assert set(indices(other.freed)) == set(indices(first.busy)) - set(indices(other.busy))
    assert len(choose_share(then, 20, 7).freed) == 16


def test_a_share_that_faults_do_not_leave_is_refused():
    with pytest.raises(GhostError, match="4 of 4 GPUs cannot be busy: faults leave 3"):
        choose_share(gpus(broken=[1]), 100, 1)


def test_a_draw_leaves_held_and_broken_gpus_out_and_is_the_same_a_second_time():
    now = gpus(12, gpu1=[POD], broken=[2, 3])
    choice = choose_at_random(now, 5, 1)
    assert len(choice.busy) == 5
    assert not {1, 2, 3} & set(indices(choice.busy))
    [(_, then)] = after([("x", now)], choice)
    assert indices(choose_at_random(then, 5, 1).busy) == indices(choice.busy)
    with pytest.raises(InputError, match=r"10 GPU\(s\) were asked for at random, and there are 9"):
        choose_at_random(now, 10, 1)


def test_a_named_gpu_that_is_busy_the_same_way_asks_nobody_to_go():
    held = Gpu("node-0", 0, BUSY, frozenset([POD]))
    assert choose_named([held], BUSY) == Choice((held,))
    assert choose_named([held], BY_PODS).in_the_way == {POD}


def hardware(model="h100", mig=MigMode.STATIC, **states):
    """A node of four GPUs; `gpu1=GpuState(...)` is one that commands have changed."""
    settings = replace(configure("node", None, PoolRequest(model=model, gpus=4)), mig=mig)
    made = NodeHardware(settings, 0)
    for name, state in states.items():
        made = made.with_gpu(int(name.removeprefix("gpu")), state)
    return made


def test_a_gpu_is_seen_with_its_holders_its_occupancy_and_its_faults():
    found = look_at(
        hardware(gpu1=GpuState(occupancy=BUSY), gpu2=GpuState(faults=(Fault("xid", 79),))),
        range(4),
        by_node(
            {
                ("node-0", "gpu-0-mig-1g10gb-19-0"): [Holder(*POD, "c")],
                ("node-0", "gpu-3"): [Holder(FILLER_NAMESPACE, "node-0-gpu-3")],
                ("node-1", "gpu-3"): [Holder(*OTHER)],
            }
        )["node-0"],
        "node-0",
    )
    assert [gpu.holders for gpu in found] == [{POD}, set(), set(), set()]
    assert [gpu.free for gpu in found] == [False, False, False, True]
    assert [gpu.broken for gpu in found] == [False, False, True, False]


@pytest.mark.parametrize("reactor", [Reactor.DRA, Reactor.DEVICE_PLUGIN])
def test_a_gpu_is_broken_whichever_of_the_two_ways_to_it_is_closed(reactor):
    failing = hardware(gpu2=GpuState(occupancy=BUSY, faults=(Fault("xid", 79, (reactor,)),)))
    assert broken_gpus(failing) == {2}
    assert broken_gpus(hardware(gpu2=GpuState(occupancy=BUSY))) == set()


def test_declaring_twice_changes_nothing_more_and_freeing_leaves_the_rest_of_the_gpu():
    split = GpuState(mig=(MigInstance("1g.10gb", 0),))
    once = occupied(hardware(gpu1=split), {1: BUSY, 0: BY_PODS})
    assert occupied(once, {1: BUSY, 0: BY_PODS}) == once
    assert once.gpu(1) == replace(split, occupancy=BUSY)
    assert occupied(once, {}, [0, 1, 2]) == hardware(gpu1=split)


def test_a_gpu_that_the_pool_has_lost_meanwhile_is_left_out():
    assert occupied(hardware(), {9: BUSY}) == hardware()


def dynamic(*instances):
    busy = Occupancy(instances=tuple(MigInstance(name, start) for name, start in instances))
    return hardware(mig=MigMode.DYNAMIC, **({"gpu0": GpuState(occupancy=busy)} if instances else {}))


def test_parts_find_room_beside_what_is_busy_and_held():
    assert choose_parts(dynamic(), 0, "4g.40gb", {}).instances == (MigInstance("4g.40gb", 0),)
    beside_busy = choose_parts(dynamic(("4g.40gb", 0)), 0, "3g.40gb", {})
    assert beside_busy.instances == (MigInstance("3g.40gb", 4),)
    held = {"gpu-0-mig-3g40gb-9-4": {POD}, "gpu-1": {OTHER}}
    beside_held = choose_parts(dynamic(), 0, "3g.40gb", held)
    assert (beside_held.instances, beside_held.in_the_way) == ((MigInstance("3g.40gb", 0),), frozenset())


def test_parts_that_are_busy_already_are_not_taken_again():
    busy = dynamic(("3g.40gb", 4))
    assert choose_parts(busy, 0, "3g.40gb", {}).instances == ()
    assert len(choose_parts(busy, 0, "3g.40gb*2", {}).instances) == 1
    assert choose_parts(busy, 0, "3g.40gb:4", {}).instances == ()
    assert choose_parts(busy, 0, "3g.40gb:0", {}).instances == (MigInstance("3g.40gb", 0),)


def test_holders_without_room_are_named_and_only_they():
    held = {"gpu-0-mig-1g10gb-19-0": {POD}, "gpu-0-mig-1g10gb-19-6": {OTHER}}
    found = choose_parts(dynamic(), 0, "4g.40gb", held)
    assert (found.instances, found.in_the_way) == ((MigInstance("4g.40gb", 0),), {POD})
    assert choose_parts(dynamic(), 0, "1g.10gb", {"gpu-0": {POD}}).in_the_way == {POD}


def test_parts_are_refused_where_they_cannot_be():
    with pytest.raises(InputError, match="in pools of --mig dynamic only"):
        choose_parts(hardware(), 0, "1g.10gb", {})
    with pytest.raises(InputError, match="node-0/gpu-0 is busy as a whole"):
        choose_parts(occupied(dynamic(), {0: BUSY}), 0, "1g.10gb", {})
    with pytest.raises(InputError, match=r"no room for 7g\.80gb"):
        choose_parts(dynamic(("4g.40gb", 0)), 0, "4g.40gb,7g.80gb", {})
    with pytest.raises(InputError, match="unknown MIG profile"):
        choose_parts(dynamic(), 0, "9g.90gb", {})


def test_parts_declared_by_two_at_once_stand_side_by_side_or_are_refused():
    first = occupied(dynamic(), {0: Occupancy(instances=(MigInstance("4g.40gb", 0),))})
    both = occupied(first, {0: Occupancy(instances=(MigInstance("3g.40gb", 4),))})
    assert both == dynamic(("4g.40gb", 0), ("3g.40gb", 4))
    with pytest.raises(InputError, match="both need"):
        occupied(first, {0: Occupancy(instances=(MigInstance("3g.40gb", 0),))})


def test_who_has_no_room_on_a_gpu_as_it_is_declared():
    held = {"gpu-0-mig-1g10gb-19-0": {POD}, "gpu-0-mig-1g10gb-19-6": {OTHER}, "gpu-1": {("x", "y")}}
    assert without_room(dynamic(), 0, held) == frozenset()
    assert without_room(dynamic(("4g.40gb", 0)), 0, held) == {POD}
    assert without_room(occupied(dynamic(), {0: BUSY}), 0, held) == {POD, OTHER}
