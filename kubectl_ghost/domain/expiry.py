"""What ends by itself: faults with a limit, and reboots."""

from __future__ import annotations

from dataclasses import replace

from kubectl_ghost.domain.breaking import with_faults_left
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.rebooting import finish_reboot, reboot_due


def is_over(fault: Fault, now: str) -> bool:
    """Whether a fault's time has passed; both times are RFC 3339 in UTC, to the second."""
    return bool(fault.until) and fault.until <= now


def without_what_is_over(hardware: NodeHardware, now: str) -> NodeHardware:
    """The node as it is at this time: ended faults gone, a reboot that is due finished."""
    if not hardware.gpus and not hardware.faults and hardware.reboot is None:
        return hardware
    current = replace(hardware, faults=_lasting(hardware.faults, now))
    for index, state in hardware.gpus:
        current = current.with_gpu(index, with_faults_left(hardware, state, _lasting(state.faults, now)))
    return finish_reboot(current) if reboot_due(current, now) else current


def _lasting(faults: tuple[Fault, ...], now: str) -> tuple[Fault, ...]:
    return tuple(fault for fault in faults if not is_over(fault, now))


def next_end(hardware: NodeHardware) -> str:
    """The earliest time at which something on this node ends by itself; "" if nothing does."""
    ends = [fault.until for _, fault in hardware.all_faults() if fault.until]
    if hardware.reboot is not None:
        ends.append(hardware.reboot.until)
    return min(ends, default="")
