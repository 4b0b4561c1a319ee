"""Who does what about each fault; the lists are written out here, so that a slip in the catalogue is seen."""

import pytest

from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.fault_catalogue import codes, explain, kinds
from kubectl_ghost.domain.faults import Effect, Fault, Reactor
from kubectl_ghost.domain.reactions import Condition, DeviceTaint, Notice, Reaction, reaction

IGNORED = {13, 31, 43, 45, 68, 109}
"""What NVIDIA's device plugin and DRA driver take for errors of the application."""
EKS_FATAL = {46, 48, 54, 62, 63, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 142, 143, 151, 155, 156, 158}
SENTINEL_FATAL = {46, 48, 54, 61, 62, 64, 74, 78, 79, 95, 108, 109, 110, 119, 120, 136, 140, 142, 143}
SENTINEL_FATAL |= {144, 145, 146, 147, 148, 149, 150, 151, 155, 156, 158, 160, 162}
SENTINEL_SILENT = set(range(163, 173))
EXIT_CODES = {13: 139, 31: 139, 43: 134, 45: 134, 69: 134, 94: 134}
H100 = model("h100-sxm5-80gb")
SINCE = "2026-01-02T04:04:05+01:00"


def react(kind: str, code: int | None = None, *reactors: Reactor, effect: Effect | None = None) -> Reaction:
    return reaction(Fault(kind, code, reactors, effect, SINCE), H100, "gpu-2")


@pytest.mark.parametrize("code", codes())
def test_by_default_an_xid_taints_lowers_allocatable_and_evicts(code):
    said = react("xid", code)
    effect = Effect.NONE if code in IGNORED else Effect.NO_EXECUTE
    assert said.taint == DeviceTaint("gpu.nvidia.com/xid", str(code), effect)
    assert said.unhealthy is (code not in IGNORED)
    assert said.evicts is (code not in IGNORED)
    assert said.exit_code == EXIT_CODES.get(code)
    assert (said.all_devices, said.conditions, said.labels, said.cordon) == (False, (), (), False)
    assert said.notices == (
        Notice("Warning", f"XID{code}", f"gpu-2: XID {code}, {explain(code).description}", "kubectl-ghost"),
    )


@pytest.mark.parametrize("code", codes())
def test_the_dra_driver_alone_taints_as_in_the_field_and_evicts_nobody(code):
    said = react("xid", code, Reactor.DRA)
    effect = Effect.NONE if code in IGNORED else Effect.NO_SCHEDULE
    assert said.taint == DeviceTaint("gpu.nvidia.com/xid", str(code), effect)
    assert (said.unhealthy, said.evicts, said.cordon, said.conditions) == (False, False, False, ())
    assert said.exit_code == EXIT_CODES.get(code)
    assert len(said.notices) == 1


@pytest.mark.parametrize("code", codes())
def test_the_device_plugin_alone_lowers_allocatable_and_evicts_nobody(code):
    said = react("xid", code, Reactor.DEVICE_PLUGIN)
    assert said.unhealthy is (code not in IGNORED)
    assert (said.taint, said.evicts, said.conditions, said.cordon) == (None, False, (), False)
    assert said.exit_code == EXIT_CODES.get(code)


@pytest.mark.parametrize("code", codes())
def test_the_eks_agent_sets_its_condition_for_21_codes_and_warns_of_the_rest(code):
    said = react("xid", code, Reactor.EKS)
    text = f"gpu-2: XID {code}, {explain(code).description}"
    assert (said.taint, said.unhealthy, said.cordon) == (None, False, False)
    if code in EKS_FATAL:
        assert said.conditions == (Condition("AcceleratedHardwareReady", "False", f"NvidiaXID{code}Error", text),)
        assert len(said.notices) == 1
    else:
        assert said.conditions == ()
        assert said.notices[1:] == (Notice("Warning", f"NvidiaXID{code}Warning", text, "eks-node-monitoring-agent"),)


@pytest.mark.parametrize("code", codes())
def test_node_problem_detector_sets_aks_condition_for_any_xid(code):
    said = react("xid", code, Reactor.NPD)
    text = f"gpu-2: XID {code}, {explain(code).description}"
    assert said.conditions == (Condition("XIDErrors", "True", "XID errors present in kernel log", text),)
    assert (said.taint, said.unhealthy, said.cordon, len(said.notices)) == (None, False, False, 1)


@pytest.mark.parametrize("code", codes())
def test_nvsentinel_cordons_for_fatal_codes_and_writes_an_event_for_the_rest(code):
    said = react("xid", code, Reactor.NVSENTINEL)
    assert (said.taint, said.unhealthy, said.evicts) == (None, False, False)
    assert said.cordon is (code in SENTINEL_FATAL)
    assert [condition.type for condition in said.conditions] == ["SysLogsXIDError"] * (code in SENTINEL_FATAL)
    assert bool(said.labels) is (code in SENTINEL_FATAL)
    event = [] if code in SENTINEL_FATAL | SENTINEL_SILENT else [("SysLogsXIDError", "SysLogsXIDErrorIsNotHealthy")]
    assert [(notice.type, notice.reason) for notice in said.notices[1:]] == event


def test_nvsentinels_words_and_labels():
    said = react("xid", 79, Reactor.NVSENTINEL)
    assert said.conditions == (
        Condition(
            "SysLogsXIDError",
            "True",
            "SysLogsXIDErrorIsNotHealthy",
            "[79] gpu-2: XID 79, GPU has fallen off the bus - RecommendedAction: RESTART_BM",
        ),
    )
    assert said.labels == (
        ("k8saas.nvidia.com/cordon-by", "NVSentinel"),
        ("k8saas.nvidia.com/cordon-reason", "Syslog-fatal-error-ruleset"),
        ("k8saas.nvidia.com/cordon-timestamp", "2026-01-02T03-04-05Z"),
    )


def test_no_time_no_timestamp_label():
    said = reaction(Fault("xid", 79, (Reactor.NVSENTINEL,)), H100, "gpu-0")
    assert [key for key, _ in said.labels] == ["k8saas.nvidia.com/cordon-by", "k8saas.nvidia.com/cordon-reason"]


@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("reactors", [(), (Reactor.DRA,), (Reactor.EKS, Reactor.DRA)])
@pytest.mark.parametrize(("kind", "code"), [("xid", 79), ("xid", 13), ("gpu-lost", None), ("ecc-uncorrectable", None)])
def test_an_effect_that_is_given_is_the_effect(effect, reactors, kind, code):
    said = react(kind, code, *reactors, effect=effect)
    assert said.taint is not None
    assert said.taint.effect is effect
    assert said.evicts is (effect is Effect.NO_EXECUTE)


LOST = "gpu.nvidia.com/gpu-lost"
OF_XID = "gpu.nvidia.com/xid"


@pytest.mark.parametrize(
    ("kind", "taint", "unhealthy"),
    [
        ("gpu-lost", (LOST, ""), True),
        ("nvlink-down", (OF_XID, "74"), True),
        ("ecc-correctable", None, False),
        ("ecc-uncorrectable", (OF_XID, "48"), True),
        ("row-remap-pending", (OF_XID, "63"), True),
        ("row-remap-failure", (OF_XID, "64"), True),
        ("thermal", None, False),
        ("power", None, False),
        ("slow", None, False),
        ("pcie", None, False),
        ("driver-crash", (LOST, ""), True),
        ("node-down", None, False),
        ("node-unreachable", None, False),
    ],
)
def test_what_the_device_does_for_each_other_kind(kind, taint, unhealthy):
    default, field = react(kind), react(kind, None, Reactor.DRA)
    assert default.taint == (taint and DeviceTaint(*taint, Effect.NO_EXECUTE))
    assert field.taint == (taint and DeviceTaint(*taint, Effect.NO_SCHEDULE))
    assert (default.unhealthy, default.evicts) == (unhealthy, taint is not None)
    assert default.all_devices is (kind == "driver-crash")
    assert field.all_devices is (kind in ("driver-crash", "gpu-lost"))
    assert react(kind, None, Reactor.DEVICE_PLUGIN).all_devices is field.all_devices
    assert default.exit_code is None


@pytest.mark.parametrize(
    ("kind", "eks", "aks", "sentinel"),
    [
        ("gpu-lost", ("NvidiaDeviceCountMismatch", True), ["GPUMissing"], ["SysLogsGPUFallenOff"]),
        (
            "nvlink-down",
            ("NvidiaXID74Error", True),
            ["NVLinkStatusInactive", "XIDErrors"],
            ["SysLogsXIDError", "GpuNvlinkWatch"],
        ),
        ("ecc-correctable", None, [], []),
        ("ecc-uncorrectable", ("NvidiaXID48Error", True), ["XIDErrors"], ["SysLogsXIDError", "GpuMemWatch"]),
        ("row-remap-pending", ("NvidiaXID63Error", True), ["XIDErrors"], ["GpuMemWatch"]),
        ("row-remap-failure", ("NvidiaXID64Error", True), ["XIDErrors"], ["SysLogsXIDError", "GpuMemWatch"]),
        ("thermal", ("NvidiaThermalError", False), [], []),
        ("power", ("NvidiaPowerError", False), [], []),
        ("slow", None, [], []),
        ("pcie", ("NvidiaPCIeError", False), [], ["GpuPcieWatch"]),
        ("driver-crash", ("DCGMError", True), ["GPUMissing"], ["GpuDriverWatch"]),
        ("node-down", None, [], []),
        ("node-unreachable", None, [], []),
    ],
)
def test_what_the_node_shows_for_each_other_kind(kind, eks, aks, sentinel):
    said = react(kind, None, Reactor.EKS)
    reports = [(condition.reason, True) for condition in said.conditions]
    reports += [(notice.reason, False) for notice in said.notices[1:]]
    assert reports == ([] if eks is None else [eks])
    assert [condition.type for condition in react(kind, None, Reactor.NPD).conditions] == aks
    guarded = react(kind, None, Reactor.NVSENTINEL)
    assert [condition.type for condition in guarded.conditions] == sentinel
    assert guarded.cordon is bool(sentinel)


@pytest.mark.parametrize(
    ("kind", "check"), [("ecc-correctable", "GpuMemWatch"), ("thermal", "GpuThermalWatch"), ("power", "GpuPowerWatch")]
)
def test_what_nvsentinel_does_not_find_fatal_is_an_event(kind, check):
    notice = react(kind, None, Reactor.NVSENTINEL).notices[1]
    assert (notice.type, notice.reason, notice.component) == (check, f"{check}IsNotHealthy", "nvsentinel")
    assert notice.message.endswith("RecommendedAction: IGNORE")


def test_a_gpu_fault_is_put_down_to_nvsentinels_gpu_rules():
    assert dict(react("pcie", None, Reactor.NVSENTINEL).labels)["k8saas.nvidia.com/cordon-reason"] == (
        "GPU-fatal-error-ruleset"
    )


def test_an_nvlink_of_blackwell_fails_with_its_own_code():
    said = reaction(Fault("nvlink-down", reactors=(Reactor.DRA, Reactor.EKS)), model("b200"), "gpu-1")
    assert said.taint == DeviceTaint(OF_XID, "149", Effect.NO_SCHEDULE)
    assert [condition.reason for condition in said.conditions] == ["NvidiaNVLinkError"]
    assert [notice.reason for notice in said.notices] == ["NvlinkDown", "NvidiaXID149Warning"]


def test_a_straggler_is_told_by_nobody():
    assert [react("slow", None, *reactors).notices for reactors in ((), tuple(Reactor))] == [(), ()]


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind not in ("xid", "slow")])
def test_every_fault_is_told_on_the_node_whoever_reacts(kind):
    for reactors in ((), *((reactor,) for reactor in Reactor)):
        first = react(kind, None, *reactors).notices[0]
        assert (first.type, first.component) == ("Warning", "kubectl-ghost")
        assert first.message.startswith("gpu-2: ")


def test_a_fault_of_a_node_names_no_gpu():
    said = reaction(Fault("driver-crash"), H100, "")
    assert said.notices == (
        Notice(
            "Warning",
            "DriverCrash",
            "the NVIDIA driver stopped: no GPU of the node answers",
            "kubectl-ghost",
        ),
    )


def test_all_components_together_do_all_of_it():
    said = react("xid", 109, *Reactor)
    assert said.taint == DeviceTaint(OF_XID, "109", Effect.NONE)
    assert not said.unhealthy
    assert [condition.type for condition in said.conditions] == [
        "AcceleratedHardwareReady",
        "XIDErrors",
        "SysLogsXIDError",
    ]
    assert said.cordon
