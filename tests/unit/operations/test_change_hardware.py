"""Commands on one node at once: nothing of either is lost, neither in the declaration nor in what follows from it."""

import threading
from dataclasses import replace

import pytest

from kubectl_ghost.cluster.resources import NODES, RESOURCE_SLICES
from kubectl_ghost.domain.faults import Fault, Reactor
from kubectl_ghost.domain.hardware import GpuState, MigMode, Reboot
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations.change_hardware import change_nodes, end_what_is_over
from kubectl_ghost.operations.changes import Verb
from kubectl_ghost.operations.cordon import set_schedulable
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.reconcile import update_node
from kubectl_ghost.operations.selecting import select
from tests.unit.operations.fleet import add_pool, cluster, run_sync, slices_on, state
from tests.unit.operations.memory import Killed, Memory, Store

XID = Fault("xid", 79)
PAST, FUTURE = "2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


def break_gpu(writer, index, fault=XID):
    """Declare a fault the way commands do."""
    chosen = select(writer, Selection((f"node-0/gpu-{index}",)))

    def change(hardware, _):
        return hardware.with_gpu(index, GpuState(faults=(fault,)))

    return list(change_nodes(writer, chosen, change))


def tainted(store, name="node-0"):
    return [
        device["name"] for item in slices_on(store, name) for device in item["spec"]["devices"] if "taints" in device
    ]


def declared(store):
    """The GPUs with a state of their own, apart from an XID that the driver remembers."""
    states = hardware_of(store.one(NODES, "node-0")).gpus
    return [index for index, state in states if replace(state, last_xid=None) != GpuState()]


def test_one_command_writes_the_declaration_and_what_follows():
    store = cluster(1)
    changes = break_gpu(Memory(store), 2)
    assert [(change.resource, change.verb) for change in changes] == [
        (NODES, Verb.CONFIGURED),
        (RESOURCE_SLICES, Verb.CONFIGURED),
    ]
    assert tainted(store) == ["gpu-2"]
    assert store.one(NODES, "node-0")["status"]["allocatable"]["nvidia.com/gpu"] == "7"
    again = Memory(store)
    assert {change.verb for change in break_gpu(again, 2)} == {Verb.UNCHANGED}
    assert again.writes == []


@pytest.mark.parametrize("moment", range(1, 9))
def test_a_command_in_between_loses_nothing(moment):
    """The other one runs whole, just before the n-th request of the first."""
    store = cluster(1)
    writer = Memory(store)

    def other(number, _):
        if number == moment:
            break_gpu(Memory(store), 5)

    writer.before_any = other
    break_gpu(writer, 2)
    if moment > len(writer.sent):
        break_gpu(Memory(store), 5)
    assert declared(store) == [2, 5]
    assert tainted(store) == ["gpu-2", "gpu-5"]
    assert store.one(NODES, "node-0")["status"]["allocatable"]["nvidia.com/gpu"] == "6"


def test_many_commands_at_once():
    store = cluster(1)
    for _ in range(20):
        threads = [threading.Thread(target=break_gpu, args=(Memory(store), index)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert declared(store) == list(range(8))
        assert tainted(store) == [f"gpu-{index}" for index in range(8)]
        list(change_nodes(Memory(store), select(Memory(store), Selection(everything=True)), lambda old, _: _new(old)))
        assert tainted(store) == []


def _new(hardware):
    return replace(hardware, gpus=())


@pytest.mark.parametrize("mig", MigMode)
def test_a_kill_between_any_two_writes_is_finished_by_sync(mig):
    def prepared():
        store = cluster(1)
        if mig is MigMode.DYNAMIC:
            live = store.one(NODES, "node-0")
            change = lambda old: replace(old, settings=replace(old.settings, mig=mig))  # noqa: E731
            update_node(Memory(store), live, change)
        return store

    eks = Fault("driver-crash", reactors=())
    whole = prepared()
    runner = Memory(whole)

    def crash(writer):
        chosen = select(writer, Selection(("node-0",)))
        list(change_nodes(writer, chosen, lambda old, _: replace(old, faults=(eks,))))

    crash(runner)
    assert len(runner.writes) == (3 if mig is MigMode.STATIC else 11)
    for number in range(2, len(runner.writes) + 1):
        store = prepared()
        with pytest.raises(Killed):
            crash(Memory(store).kill_before(number))
        run_sync(Memory(store))
        assert _comparable(store) == _comparable(whole), number


def _comparable(store):
    """Everything but the generation, which counts interruptions."""
    found = state(store)
    for item in found.values():
        item.get("spec", {}).get("pool", {}).pop("generation", None)
    return found


def test_what_is_over_ends_at_the_next_command_and_what_is_not_stays():
    store = cluster(1)
    break_gpu(Memory(store), 1, replace(XID, until=PAST))
    break_gpu(Memory(store), 2, replace(XID, until=FUTURE))
    assert declared(store) == [2]
    assert tainted(store) == ["gpu-2"]
    assert store.one(NODES, "node-0")["metadata"]["labels"]["kubectl-ghost.dev/timed"] == "true"


def test_it_ends_on_other_nodes_too():
    store = cluster(2)
    for name, until in (("node-0", PAST), ("node-1", FUTURE)):
        fault = replace(XID, until=until)
        update_node(
            Memory(store), store.one(NODES, name), lambda old, fault=fault: old.with_gpu(0, GpuState(faults=(fault,)))
        )
    writer = Memory(store)
    assert [change.name for change in end_what_is_over(writer) if change.resource is NODES] == ["node-0"]
    assert tainted(store, "node-0") == []
    assert tainted(store, "node-1") == ["gpu-0"]
    assert "kubectl-ghost.dev/timed" not in store.one(NODES, "node-0")["metadata"]["labels"]


def test_a_reboot_that_is_due_is_finished():
    store = cluster(1)
    update_node(Memory(store), store.one(NODES, "node-0"), lambda old: replace(old, reboot=Reboot(PAST, PAST)))
    assert "kubectl-ghost.dev/node-down" in store.one(NODES, "node-0")["metadata"]["annotations"]
    list(end_what_is_over(Memory(store)))
    assert "kubectl-ghost.dev/node-down" not in store.one(NODES, "node-0")["metadata"]["annotations"]


def test_without_anything_timed_nothing_is_read_but_one_empty_list():
    store = cluster(2)
    writer = Memory(store)
    assert list(end_what_is_over(writer)) == []
    assert len(writer.sent) == 1


NVSENTINEL = Fault("xid", 79, (Reactor.NVSENTINEL,))


def cordoned(store, name="node-0"):
    return bool(store.one(NODES, name)["spec"].get("unschedulable"))


def cordon(store, by_user):
    store.edit(NODES, "node-0", lambda item: item["spec"].update(unschedulable=by_user))


def test_a_cordon_of_a_component_goes_with_the_fault():
    store = cluster(1)
    break_gpu(Memory(store), 2, NVSENTINEL)
    assert cordoned(store)
    _clear(store)
    assert not cordoned(store)


def test_a_cordon_that_was_the_users_before_the_fault_stays():
    store = cluster(1)
    cordon(store, by_user=True)
    break_gpu(Memory(store), 2, NVSENTINEL)
    _clear(store)
    assert cordoned(store)


def test_a_user_may_lift_it_and_nothing_puts_it_back():
    store = cluster(1)
    break_gpu(Memory(store), 2, NVSENTINEL)
    cordon(store, by_user=False)
    run_sync(Memory(store))
    assert not cordoned(store)


def test_a_drain_makes_it_the_users_also_through_a_reboot_that_cures():
    store = cluster(1)
    break_gpu(Memory(store), 2, NVSENTINEL)
    list(set_schedulable(Memory(store), [store.one(NODES, "node-0")], schedulable=False))
    update_node(Memory(store), store.one(NODES, "node-0"), lambda old: replace(old, reboot=Reboot(PAST, PAST)))
    list(end_what_is_over(Memory(store)))
    assert hardware_of(store.one(NODES, "node-0")).all_faults() == []
    assert cordoned(store)


def _clear(store):
    list(change_nodes(Memory(store), select(Memory(store), Selection(everything=True)), lambda old, _: _new(old)))


def test_a_damaged_or_vanishing_node_with_something_timed_stops_nobody():
    store = cluster(3)
    for name in ("node-0", "node-1", "node-2"):
        fault = replace(XID, until=PAST)
        broken = GpuState(faults=(fault,))
        update_node(Memory(store), store.one(NODES, name), lambda old, broken=broken: old.with_gpu(0, broken))
    store.edit(NODES, "node-0", lambda item: item["metadata"]["annotations"].update({HARDWARE_ANNOTATION: "{"}))
    writer = Memory(store)

    def vanish(number, _):
        if number == 2 and "node-1" in store.names(NODES):
            store.remove(NODES, "node-1")

    writer.before_any = vanish
    list(end_what_is_over(writer))
    assert tainted(store, "node-2") == []


def test_a_fault_declared_while_a_node_is_made_is_not_lost():
    store = Store()
    writer = Memory(store)
    done = []

    def theirs(_, sent):
        if sent.resource is RESOURCE_SLICES and sent.verb == "create" and not done:
            done.append(True)
            break_gpu(Memory(store), 1)

    writer.before = theirs
    add_pool(writer, count=1)
    assert done
    assert tainted(store) == ["gpu-1"]


def test_a_node_comes_back_only_when_its_resources_are_right():
    """kwok answers at once, and writes back what it sees at that moment."""
    store = cluster(1)
    break_gpu(Memory(store), 2)
    live = store.one(NODES, "node-0")
    update_node(Memory(store), live, lambda old: replace(old, reboot=Reboot(PAST, PAST)))
    writer = Memory(store)
    seen = []

    def look(_, sent):
        node = store.one(NODES, "node-0")
        seen.append((sent.resource.kind, node["status"]["allocatable"]["nvidia.com/gpu"]))

    writer.before = look
    list(end_what_is_over(writer))
    assert seen == [("Node", "7"), ("Node", "8"), ("ResourceSlice", "8")]
    assert "kubectl-ghost.dev/node-down" not in store.one(NODES, "node-0")["metadata"]["annotations"]
