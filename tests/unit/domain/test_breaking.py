"""Faults on a declaration: any GPU, any number, the same one twice is once."""

from dataclasses import replace

import pytest

from kubectl_ghost.domain.breaking import FaultFilter, begins, faults_at, struck, with_fault, without_faults
from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.declaration_reading import decode
from kubectl_ghost.domain.faults import Effect, Fault, Reactor
from kubectl_ghost.domain.hardware import GpuState, LastXid, NodeHardware, Occupancy
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.domain.reactions import reaction

NEW = NodeHardware(configure("node", None, PoolRequest()), 0)
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"
LOST = Fault("xid", 79, since=EARLY)
EVERYTHING = FaultFilter()


def test_any_gpu_and_any_number_of_faults():
    broken = with_fault(with_fault(NEW, [7, 2], LOST), [2], Fault("xid", 48, since=EARLY))
    assert [(index, fault.name) for index, fault in broken.all_faults()] == [
        (2, "XID 48"),
        (2, "XID 79"),
        (7, "XID 79"),
    ]
    assert decode(encode(broken), "node-0") == broken


def test_the_order_of_declaring_does_not_matter():
    other = Fault("thermal", since=EARLY)
    assert with_fault(with_fault(NEW, [0], LOST), [0], other) == with_fault(with_fault(NEW, [0], other), [0], LOST)


def test_the_same_fault_again_changes_nothing_and_keeps_its_beginning():
    broken = with_fault(NEW, [2], LOST)
    assert with_fault(broken, [2], replace(LOST, since=LATE)) == broken


def test_another_end_does_not_begin_a_fault_anew():
    again = with_fault(with_fault(NEW, [2], LOST), [2], replace(LOST, since=LATE, until="2026-01-01T01:00:00Z"))
    assert faults_at(again, 2) == (replace(LOST, until="2026-01-01T01:00:00Z"),)


@pytest.mark.parametrize("other", [{"reactors": (Reactor.DRA,)}, {"effect": Effect.NONE}])
def test_other_options_replace_it(other):
    changed = replace(LOST, since=LATE, **other)
    assert faults_at(with_fault(with_fault(NEW, [2], LOST), [2], changed), 2) == (changed,)


def test_what_is_news():
    broken = with_fault(NEW, [2], LOST)
    assert begins(NEW, 2, LOST)
    assert begins(broken, 3, LOST)
    assert not begins(broken, 2, replace(LOST, since=LATE, until=LATE))
    assert begins(broken, 2, replace(LOST, effect=Effect.NONE))


def test_a_fault_of_the_node_is_declared_once_whatever_gpus_are_named():
    down = Fault("node-down", since=EARLY)
    assert with_fault(NEW, range(8), down) == replace(NEW, faults=(down,))
    assert faults_at(with_fault(NEW, [], down), None) == (down,)


def test_clearing_undoes_exactly_that():
    busy = NEW.with_gpu(2, replace(NEW.gpu(2), occupancy=Occupancy()))
    broken = with_fault(with_fault(busy, [2, 3], LOST), [], Fault("node-down", since=EARLY))
    mended = without_faults(broken, range(8), EVERYTHING, node=True)
    remembered = LastXid(79, EARLY)
    assert mended == busy.with_gpu(2, replace(busy.gpu(2), last_xid=remembered)).with_gpu(
        3, GpuState(last_xid=remembered)
    )
    assert without_faults(broken, [3], EVERYTHING, node=False).all_faults() == [
        (None, Fault("node-down", since=EARLY)),
        (2, LOST),
    ]


@pytest.mark.parametrize(
    ("meant", "left"),
    [
        (FaultFilter(("xid",)), ["thermal"]),
        (FaultFilter(("xid",), 79), ["thermal", "XID 48"]),
        (FaultFilter((), 48), ["thermal", "XID 79"]),
        (FaultFilter(("thermal", "xid")), []),
        (FaultFilter(("pcie",)), ["thermal", "XID 48", "XID 79"]),
    ],
)
def test_only_those_that_are_named_are_cleared(meant, left):
    broken = NEW
    for fault in (LOST, Fault("xid", 48), Fault("thermal")):
        broken = with_fault(broken, [0], fault)
    cleared = without_faults(broken, [0], meant, node=True)
    assert [fault.name for fault in faults_at(cleared, 0)] == left


@pytest.mark.parametrize(
    ("fault", "index", "gpus"),
    [
        (LOST, 2, [2]),
        (Fault("gpu-lost"), 2, [2]),
        (Fault("gpu-lost", reactors=(Reactor.DRA,)), 2, range(8)),
        (Fault("driver-crash"), None, range(8)),
    ],
)
def test_which_gpus_a_fault_strikes(fault, index, gpus):
    answer = reaction(fault, model(NEW.settings.model), "gpu-2")
    assert struck(NEW, index, answer) == tuple(gpus)
