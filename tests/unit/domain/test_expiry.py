"""What ends by itself ends at its time, and nothing else does."""

from dataclasses import replace

from kubectl_ghost.domain.expiry import next_end, without_what_is_over
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState, NodeHardware, Reboot
from kubectl_ghost.domain.pools import PoolRequest, configure

NODE = NodeHardware(configure("node", None, PoolRequest()), 0)
SHORT = Fault("xid", 79, since="2026-01-01T00:00:00Z", until="2026-01-01T00:10:00Z")
LASTING = Fault("thermal", since="2026-01-01T00:00:00Z")


def test_a_fault_ends_when_its_time_has_come():
    hardware = replace(NODE.with_gpu(1, GpuState(faults=(SHORT, LASTING))), faults=(SHORT,))
    assert without_what_is_over(hardware, "2026-01-01T00:09:59Z") == hardware
    after = without_what_is_over(hardware, "2026-01-01T00:10:00Z")
    assert after.gpu(1).faults == (LASTING,)
    assert after.faults == ()


def test_a_reboot_that_is_due_cures_and_ends():
    rebooting = replace(
        NODE.with_gpu(1, GpuState(faults=(replace(SHORT, until=""), LASTING))),
        reboot=Reboot("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
    )
    assert without_what_is_over(rebooting, "2026-01-01T00:00:59Z") == rebooting
    after = without_what_is_over(rebooting, "2026-01-01T00:01:00Z")
    assert after.reboot is None
    assert after.gpu(1).faults == (LASTING,)


def test_the_next_end_is_the_earliest():
    assert next_end(NODE) == ""
    hardware = replace(
        NODE.with_gpu(1, GpuState(faults=(SHORT,))), reboot=Reboot("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z")
    )
    assert next_end(hardware) == "2026-01-01T00:05:00Z"
