"""A node's reboot as a change of its declaration: begun, over, and what it cures. Times are RFC 3339 in UTC."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from kubectl_ghost.domain.faults import cured_by_reboot
from kubectl_ghost.domain.hardware import GpuState, NodeHardware, Reboot


def begin_reboot(hardware: NodeHardware, now: datetime, seconds: float) -> NodeHardware:
    """The same node, rebooting for so many seconds from now on; one that is rebooting already goes on with that."""
    if hardware.reboot is not None:
        return hardware
    return replace(hardware, reboot=Reboot(_text(now), _text(_ceiling(now + timedelta(seconds=seconds)))))


def reboot_due(hardware: NodeHardware, now: str | datetime) -> bool:
    """Whether a node is rebooting and the time of it is over. One whose end cannot be read is over."""
    return hardware.reboot is not None and seconds_left(hardware, now) <= 0


def seconds_left(hardware: NodeHardware, now: str | datetime) -> float:
    """Seconds until a node's reboot is over; 0 when it is, or when there is none."""
    if hardware.reboot is None:
        return 0.0
    try:
        until = _moment(hardware.reboot.until)
    except ValueError:
        return 0.0
    return max(0.0, (until - (_moment(now) if isinstance(now, str) else now)).total_seconds())


def finish_reboot(hardware: NodeHardware) -> NodeHardware:
    """The node as it comes back: no longer rebooting, and without the faults that a reboot cures."""
    back = replace(
        hardware, reboot=None, faults=tuple(fault for fault in hardware.faults if not cured_by_reboot(fault))
    )
    for index, state in hardware.gpus:
        back = back.with_gpu(index, _cured(state))
    return back


def _cured(state: GpuState) -> GpuState:
    """Without the faults that a reboot cures, and without what the driver remembers."""
    return replace(state, last_xid=None, faults=tuple(fault for fault in state.faults if not cured_by_reboot(fault)))


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ceiling(moment: datetime) -> datetime:
    """The next whole second, so that a reboot lasts no less than was asked for."""
    return moment + timedelta(microseconds=-moment.microsecond % 1_000_000)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
