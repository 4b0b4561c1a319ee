"""A reboot in the declaration: once at a time, over when it is over, and curing what a reboot cures."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.declaration_reading import decode
from kubectl_ghost.domain.faults import Fault, cured_by_reboot
from kubectl_ghost.domain.hardware import GpuState, NodeHardware, Reboot
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.domain.rebooting import begin_reboot, finish_reboot, reboot_due, seconds_left

NEW = NodeHardware(configure("node", None, PoolRequest()), 0)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CURED, LASTING = Fault("xid", 79), Fault("row-remap-failure")


def test_the_examples_are_what_they_are_taken_for():
    assert cured_by_reboot(CURED)
    assert not cured_by_reboot(LASTING)


def test_a_reboot_has_a_beginning_and_an_end():
    hardware = begin_reboot(NEW, NOON, 30)
    assert hardware.reboot == Reboot("2026-01-01T12:00:00Z", "2026-01-01T12:00:30Z")
    assert decode(encode(hardware), "node-0") == hardware


def test_it_lasts_no_less_than_was_asked_for():
    late = NOON + timedelta(microseconds=1)
    assert begin_reboot(NEW, late, 30).reboot.until == "2026-01-01T12:00:31Z"
    assert begin_reboot(NEW, NOON, 1.5).reboot.until == "2026-01-01T12:00:02Z"


def test_its_times_are_utc():
    here = NOON.astimezone(timezone(timedelta(hours=5)))
    assert begin_reboot(NEW, here, 30).reboot.since == "2026-01-01T12:00:00Z"


def test_a_second_one_does_not_begin_while_one_lasts():
    first = begin_reboot(NEW, NOON, 30)
    assert begin_reboot(first, NOON + timedelta(seconds=10), 60) == first


@pytest.mark.parametrize(("after", "due", "left"), [(0, False, 30), (29, False, 1), (30, True, 0), (99, True, 0)])
def test_when_it_is_over(after, due, left):
    hardware, now = begin_reboot(NEW, NOON, 30), NOON + timedelta(seconds=after)
    assert (reboot_due(hardware, now), seconds_left(hardware, now)) == (due, left)
    assert reboot_due(hardware, now.isoformat()) is due


def test_without_a_reboot_none_is_due():
    assert not reboot_due(NEW, NOON)
    assert seconds_left(NEW, NOON) == 0


@pytest.mark.parametrize(("until", "due"), [("soon", True), ("2026-01-01T12:00:01", False)])
def test_an_end_that_somebody_wrote_by_hand(until, due):
    assert reboot_due(replace(NEW, reboot=Reboot("", until)), NOON) is due


def test_what_a_reboot_cures_is_gone_and_the_rest_stays():
    split = GpuState(mig=(MigInstance("1g.10gb", 0),), faults=(CURED,))
    broken = replace(begin_reboot(NEW, NOON, 30), faults=(CURED, LASTING))
    broken = broken.with_gpu(1, split).with_gpu(2, GpuState(faults=(LASTING, CURED)))
    back = finish_reboot(broken.with_gpu(3, GpuState(faults=(CURED,))))
    assert back.reboot is None
    assert back.faults == (LASTING,)
    assert back.gpus == ((1, replace(split, faults=())), (2, GpuState(faults=(LASTING,))))


def test_a_node_that_nothing_ails_comes_back_as_it_was():
    assert finish_reboot(begin_reboot(NEW, NOON, 30)) == NEW
    assert finish_reboot(NEW) == NEW
