"""The alert rules as promtool sees them: each fires for what is broken, and for nothing else."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from kubectl_ghost.domain.fault_catalogue import codes, explain, kinds
from kubectl_ghost.manifests.prometheus_rules import rule_file
from kubectl_ghost.manifests.series_labels import SeriesLabels, renamed
from kubectl_ghost.render.yaml_out import dump
from tests.consumers.promtool import check_rules, expect_from_rules
from tests.consumers.series import (
    BROKEN_AT,
    Device,
    all_series,
    becomes,
    begins,
    ends,
    fleet,
    metric,
    steady,
)

BROKEN, MIG, FREE = "node-0/1", "node-1/4/7", "node-0/3"
SOON, SETTLED, LATER = BROKEN_AT + 1, BROKEN_AT + 13, BROKEN_AT + 40
"""Minutes: at once, after every alert's patience, and long after."""


class Alert(NamedTuple):
    """One that is to fire, and what its labels say."""

    name: str
    severity: str
    recovery: str | None
    labels: dict[str, str]


def firing(minute: int, *alerts: Alert) -> dict[str, Any]:
    """A test that just these alerts fire in that minute, whatever they are called."""
    samples = []
    for name, severity, recovery, labels in alerts:
        routed = {"severity": severity} | ({"recovery": recovery} if recovery else {})
        every = {"alertname": name, "alertstate": "firing"} | routed | labels
        samples.append({"labels": metric("ALERTS", every), "value": 1})
    return {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{minute}m", "exp_samples": samples}


def case(devices, *tests, **further) -> dict[str, Any]:
    return {"interval": "1m", "input_series": all_series(devices), "promql_expr_test": list(tests), **further}


@pytest.fixture
def expect(tmp_path, rules):
    """Demand that just these alerts fire, each in its minute, after one change of the healthy fleet."""

    def check(changed, tests, removed=()):
        devices = {name: device for name, device in (fleet() | changed).items() if name not in removed}
        expect_from_rules(tmp_path, rules, [case(devices.values(), *tests)])

    return check


@pytest.mark.parametrize("labels", [SeriesLabels(), renamed(["pod=exported_pod", "Hostname=hostname", "UUID=uuid"])])
def test_promtool_finds_no_fault(tmp_path, labels):
    path = tmp_path / "rules.yaml"
    path.write_text(dump(rule_file(labels)), encoding="utf-8")
    check_rules(path)


def test_a_healthy_fleet_is_quiet(expect):
    expect({}, [firing(minute) for minute in (1, SOON, SETTLED, LATER)])


XIDS = {
    13: ("GPUXidApplicationError", "warning", "application"),
    43: ("GPUXidNotice", "info", "none"),
    45: ("GPUXidFollowsAnother", "info", "none if another Xid is present"),
    48: ("GPUXidNeedsReset", "critical", "gpu_reset"),
    54: ("GPUXidNeedsHands", "critical", "hands on"),
    61: ("GPUXidNeedsSupport", "critical", "support"),
    74: ("GPUXidNeedsReset", "critical", "gpu_reset"),
    78: ("GPUXidNeedsSoftwareUpdate", "warning", "software update"),
    79: ("GPUXidNeedsPowerCycle", "critical", "node_power_cycle"),
    149: ("GPUXidRecoveryBySubcode", "warning", "per subcode (RESET_GPU, IGNORE or Xid 154)"),
    151: ("GPUXidNeedsNodeReboot", "critical", "node_reboot"),
    154: ("GPUXidRecoveryAnnounced", "warning", "as stated in the message"),
    159: ("GPUXidNeedsDriverCheck", "warning", "driver"),
    165: ("GPUXidWithoutAdvice", "warning", None),
    6: ("GPUXidUnknown", "warning", None),
}
PASSING = {13, 43, 45}


def error(device: Device, code: int) -> dict[str, str]:
    return device.device_labels | {"err_code": str(code), "err_msg": f"Message {code}"}


@pytest.mark.parametrize(
    ("where", "code"), [*((BROKEN, code) for code in XIDS), (FREE, 13), (FREE, 79), (MIG, 13), (MIG, 48)]
)
def test_an_xid_is_told_of_for_as_long_as_something_is_broken(tmp_path, rules, where, code):
    device, healthy = fleet()[where], fleet()["node-1/0"]
    alert = Alert(*XIDS[code], error(device, code))
    later = [] if code in PASSING else [alert]
    tests = [firing(BROKEN_AT - 1), firing(SOON, alert), firing(LATER, *later)]
    expect_from_rules(tmp_path, rules, [case([device.reporting(code), healthy], *tests)])


def test_every_code_of_the_catalogue_has_the_alert_of_its_recovery(tmp_path, rules):
    by_recovery = {recovery: (name, severity) for name, severity, recovery in XIDS.values()}
    by_recovery[None] = XIDS[165][:2]
    devices = {code: Device("node-0", code, pod="job").reporting(code) for code in codes()}
    alerts = [
        Alert(*by_recovery[explain(code).recovery], explain(code).recovery, error(device, code))
        for code, device in devices.items()
    ]
    assert len(alerts) == 112
    expect_from_rules(tmp_path, rules, [case(devices.values(), firing(SOON, *alerts))])


def test_an_alert_outlives_the_pod_that_the_fault_evicts(expect):
    device = fleet()[BROKEN]
    held = replace(device, xid={0: ends(0), 48: f"_x{BROKEN_AT} 48x1 stale"}).but(
        **{name: ends(60) for name in ("GPU_TEMP", "GPU_UTIL")}
    )
    free = replace(device, pod="", xid={48: f"_x{BROKEN_AT + 2} 48x60"}).but(
        **{name: begins(60) for name in ("GPU_TEMP", "GPU_UTIL")}
    )
    alert = Alert(*XIDS[48], error(device, 48))
    tests = [firing(minute, alert) for minute in (SOON, BROKEN_AT + 2, LATER)]
    expect({BROKEN: held, "the same": free}, tests)


def test_an_application_error_is_not_told_of_again_because_its_pod_ended(expect):
    device = fleet()[BROKEN]
    held = replace(device, xid={0: ends(0), 31: f"_x{BROKEN_AT} 31x19 stale"})
    freed = replace(device, pod="", xid={31: f"_x{BROKEN_AT + 20} 31x40"})
    expect({BROKEN: held, "the same": freed}, [firing(BROKEN_AT + 16), firing(BROKEN_AT + 21), firing(LATER)])


def test_an_exporter_without_error_codes(tmp_path, rules):
    device = fleet()[BROKEN]
    series = {"series": metric("DCGM_FI_DEV_XID_ERRORS", device.device_labels), "values": becomes(0, 79)}
    found = Alert("GPUXidUnknown", "warning", None, device.gpu_labels)
    test = {"interval": "1m", "input_series": [series], "promql_expr_test": [firing(1), firing(SOON, found)]}
    expect_from_rules(tmp_path, rules, [test])


GPU_FAULTS = {
    "thermal": ({"THERMAL_VIOLATION": becomes(0, "0+6e10")}, ("GPUThermalThrottling", "warning", "hands on")),
    "power": ({"POWER_VIOLATION": becomes(0, "0+6e10")}, ("GPUPowerThrottling", "warning", "hands on")),
    "ecc-correctable": ({"ECC_SBE_VOL_TOTAL": becomes(0, "0+6")}, ("GPUSingleBitErrors", "info", "none")),
    "ecc-uncorrectable": ({"ECC_DBE_VOL_TOTAL": becomes(0, 1)}, ("GPUDoubleBitError", "critical", "gpu_reset")),
    "row-remap-pending": (
        {"_UNCORRECTABLE_REMAPPED_ROWS": becomes(0, 1)},
        ("GPURowRemapPending", "warning", "gpu_reset"),
    ),
    "row-remap-failure": ({"ROW_REMAP_FAILURE": becomes(0, 1)}, ("GPURowRemapFailure", "critical", "new board")),
    "nvlink-down": (
        {"NVLINK_RECOVERY_ERROR_COUNT_TOTAL": becomes(0, 1)},
        ("GPUNVLinkErrors", "critical", "gpu_reset"),
    ),
    "nvlink-down, replays": (
        {"NVLINK_REPLAY_ERROR_COUNT_TOTAL": becomes(0, 1)},
        ("GPUNVLinkErrors", "critical", "gpu_reset"),
    ),
    "nvlink-down, many CRC errors": (
        {"CRC_DATA_ERROR_COUNT_TOTAL": becomes(0, "0+6600")},
        ("GPUNVLinkErrors", "critical", "gpu_reset"),
    ),
    "pcie": ({"PCIE_REPLAY_COUNTER": becomes(0, "0+9")}, ("GPUPcieReplays", "warning", "hands on")),
    "slow": (
        {"SM_CLOCK": becomes(1980, 1386), "POWER_USAGE": becomes(600, 500)},
        ("GPUStraggler", "warning", "unknown"),
    ),
}


@pytest.mark.parametrize("name", GPU_FAULTS)
def test_a_fault_of_a_gpu_is_told_of_alone(expect, name):
    changes, alert = GPU_FAULTS[name]
    device = fleet()[BROKEN]
    expect({BROKEN: device.but(**changes)}, [firing(1), firing(SETTLED, Alert(*alert, device.gpu_labels))])


@pytest.mark.parametrize("name", [name for name in GPU_FAULTS if name != "slow"])
def test_what_is_the_whole_gpus_is_one_alert_under_mig(expect, name):
    changes, alert = GPU_FAULTS[name]
    instances = {key: device.but(**changes) for key, device in fleet().items() if key.startswith("node-1/4/")}
    assert len(instances) == 2
    expect(instances, [firing(SETTLED, Alert(*alert, fleet()[MIG].gpu_labels))])


@pytest.mark.parametrize("name", ["ecc-correctable", "row-remap-pending", "nvlink-down", "nvlink-down, replays"])
def test_a_count_that_rises_as_the_pod_goes(expect, name):
    (field,), alert = GPU_FAULTS[name]
    device = fleet()[BROKEN]
    held, free = device.but(**{field: ends(0)}), replace(device, pod="").but(**{field: begins(1)})
    expect({BROKEN: held, "the same": free}, [firing(SOON, Alert(*alert, device.gpu_labels))])


@pytest.mark.parametrize(
    "changes",
    [
        # Nearly half of the time at the power limit is usual in training, and a few errors on a link are corrected.
        {"POWER_VIOLATION": becomes(0, "0+2.9e10")},
        {"CRC_FLIT_ERROR_COUNT_TOTAL": becomes(0, "0+5400")},
        {"PCIE_REPLAY_COUNTER": becomes(0, "0+7")},
        # A light job: little power at the full clock. A heavy one: a lower clock at the power limit.
        {"POWER_USAGE": becomes(600, 300)},
        {"SM_CLOCK": becomes(1980, 1400), "POWER_USAGE": becomes(600, 700)},
        # Slow because it has little to do.
        {"SM_CLOCK": becomes(1980, 345), "POWER_USAGE": becomes(600, 70), "GPU_UTIL": becomes(95, 0)},
        # The rows were remapped, and the link trained anew, long before anybody looked.
        {"_UNCORRECTABLE_REMAPPED_ROWS": steady(3), "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": steady(1)},
    ],
)
def test_what_is_no_fault_is_not_told_of(expect, changes):
    expect({BROKEN: fleet()[BROKEN].but(**changes)}, [firing(SETTLED), firing(LATER)])


@pytest.mark.parametrize(
    ("event", "alert"),
    [
        ("hw_thermal", "GPUThermalThrottling"),
        ("sw_thermal", "GPUThermalThrottling"),
        ("hw_power_brake", "GPUPowerThrottling"),
    ],
)
def test_throttling_is_seen_by_counted_events_too(tmp_path, rules, event, alert):
    device = fleet()[BROKEN]
    labels = device.device_labels | {"clock_event": event, "window_size_in_ms": "300000"} | device.holder_labels
    series = [
        {"series": metric("DCGM_EXP_CLOCK_EVENTS_COUNT", labels), "values": begins(12)},
        {"series": metric("DCGM_EXP_CLOCK_EVENTS_COUNT", labels | {"clock_event": "power_cap"}), "values": steady(9)},
    ]
    found = firing(SETTLED, Alert(alert, "warning", "hands on", device.gpu_labels))
    expect_from_rules(
        tmp_path, rules, [{"interval": "1m", "input_series": series, "promql_expr_test": [firing(1), found]}]
    )


def test_two_busy_gpus_are_no_peers(expect):
    changes, _ = GPU_FAULTS["slow"]
    only = {"node-0/0", BROKEN, FREE}
    expect({BROKEN: fleet()[BROKEN].but(**changes)}, [firing(SETTLED)], removed=set(fleet()) - only)


def lost(device: Device) -> Alert:
    return Alert("GPULost", "critical", "node_power_cycle", device.gpu_labels)


def test_a_lost_gpu_is_missed_for_long(expect):
    device = fleet()[BROKEN]
    expect(
        {BROKEN: device.without()}, [firing(BROKEN_AT - 1), firing(SETTLED, lost(device)), firing(LATER, lost(device))]
    )


def test_a_lost_gpu_in_mig_mode_is_one(expect):
    instances = {key: device.without() for key, device in fleet().items() if key.startswith("node-1/4/")}
    expect(instances, [firing(SETTLED, lost(fleet()[MIG]))])


def test_a_gpu_that_is_split_is_not_lost(expect):
    device = fleet()[BROKEN]
    instance = replace(device, instance=("1g.10gb", "7"), pod="", xid={0: begins(0)})
    split = instance.but(**{name: begins(60) for name in ("GPU_TEMP", "SM_CLOCK", "POWER_USAGE", "ENGINE_ACTIVE")})
    expect({BROKEN: device.without(), f"{BROKEN}/7": split}, [firing(SETTLED), firing(LATER)])


def test_a_gpu_that_has_fallen_off_the_bus_is_lost_and_says_why(expect):
    device = fleet()[BROKEN]
    broken = replace(device.without(xid=False), xid={0: ends(0), 79: begins(79)})
    xid = Alert(*XIDS[79], error(device, 79))
    expect({BROKEN: broken}, [firing(SETTLED, xid, lost(device))])


def test_a_node_of_which_only_an_xid_is_left_is_not_silent(expect):
    device = fleet()[BROKEN]
    broken = replace(device.without(xid=False), xid={0: ends(0), 79: begins(79)})
    others = {name for name in fleet() if name.startswith("node-0/")} - {BROKEN}
    expect({BROKEN: broken}, [firing(SETTLED, Alert(*XIDS[79], error(device, 79)), lost(device))], removed=others)


def test_a_silent_node_is_told_of_as_a_node(expect):
    gone = {name: device.without() for name, device in fleet().items() if name.startswith("node-1/")}
    silent = Alert("GPUNodeSilent", "critical", "node_reboot", {"Hostname": "node-1"})
    expect(gone, [firing(BROKEN_AT - 1), firing(SETTLED, silent), firing(LATER, silent)])


def test_every_kind_of_fault_has_been_told_of():
    tested = {name.split(",")[0] for name in GPU_FAULTS} | {"xid", "gpu-lost"}
    # All three are a node whose GPUs report nothing.
    assert tested | {"driver-crash", "node-down", "node-unreachable"} == set(kinds())


def test_the_words_of_an_xid(tmp_path, rules):
    device = fleet()[MIG]
    words = {
        "summary": "XID 13 on GPU 4 of node-1: Message 13",
        "description": "NVIDIA H100 80GB HBM3, GPU-node-1-4, PCI 00000000:04:00.0, MIG 1g.10gb instance 7. "
        "NVIDIA's advice: RESTART_APP, then WORKFLOW_XID_13.",
        "pods": "ml/infer",
    }
    labels = error(device, 13) | {"severity": "warning", "recovery": "application"}
    test = {
        "eval_time": f"{SOON}m",
        "alertname": "GPUXidApplicationError",
        "exp_alerts": [{"exp_labels": labels, "exp_annotations": words}],
    }
    devices = fleet() | {MIG: device.reporting(13)}
    expect_from_rules(tmp_path, rules, [case(devices.values(), alert_rule_test=[test])])


def test_the_words_of_a_lost_gpu_name_the_pod_that_had_it(tmp_path, rules):
    device = fleet()[BROKEN]
    identity = "NVIDIA H100 80GB HBM3, GPU-node-0-1, PCI 00000000:01:00.0."
    words = {"summary": "GPU 1 of node-0: the driver no longer finds the GPU", "description": identity}
    labels = device.gpu_labels | {"severity": "critical", "recovery": "node_power_cycle"}
    tests = [
        {
            "eval_time": f"{minute}m",
            "alertname": "GPULost",
            "exp_alerts": [{"exp_labels": labels, "exp_annotations": words | {"pods": pods}}],
        }
        for minute, pods in ((SETTLED, "ml/train-node-0-1"), (LATER, "none"))
    ]
    devices = fleet() | {BROKEN: device.without()}
    expect_from_rules(tmp_path, rules, [case(devices.values(), alert_rule_test=tests)])


RENAMED = {"Hostname": "hostname", "UUID": "uuid", "pod": "exported_pod", "namespace": "exported_namespace"}


def test_labels_under_other_names(tmp_path):
    """As where a scrape does not honour the exporter's labels: `pod` is the exporter's own pod, on every series."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(dump(rule_file(renamed(f"{name}={new}" for name, new in RENAMED.items()))), encoding="utf-8")

    def other(labels):
        return {RENAMED.get(name, name): value for name, value in labels.items()}

    devices = fleet() | {BROKEN: fleet()[BROKEN].reporting(13), FREE: fleet()[FREE].without()}
    series = all_series(devices.values())
    for one in series:
        for name, new in RENAMED.items():
            one["series"] = one["series"].replace(f"{name}=", f"{new}=")
        one["series"] = one["series"].removesuffix("}") + ', namespace="gpu-operator", pod="dcgm-exporter-x"}'
    xid = Alert(*XIDS[13], other(error(devices[BROKEN], 13)))
    gone = lost(devices[FREE])._replace(labels=other(devices[FREE].gpu_labels))
    words = {"pods": "ml/train-node-0-1", "summary": "XID 13 on GPU 1 of node-0: Message 13"}
    advice = (
        "NVIDIA H100 80GB HBM3, GPU-node-0-1, PCI 00000000:01:00.0. NVIDIA's advice: RESTART_APP, then WORKFLOW_XID_13."
    )
    said = {
        "eval_time": f"{SETTLED}m",
        "alertname": xid.name,
        "exp_alerts": [
            {
                "exp_labels": xid.labels | {"severity": "warning", "recovery": "application"},
                "exp_annotations": words | {"description": advice},
            }
        ],
    }
    test = {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [firing(SETTLED, xid, gone)],
        "alert_rule_test": [said],
    }
    expect_from_rules(tmp_path, rules, [test])


def held(name: str, gpu: int, values: str, instance: tuple[str, str] | None = None) -> dict[str, str]:
    """A day and more of the utilisation of what a pod holds, every five minutes."""
    field = "DCGM_FI_PROF_GR_ENGINE_ACTIVE" if instance else "DCGM_FI_DEV_GPU_UTIL"
    device = Device("node-0", gpu, pod=name, instance=instance)
    return {"series": metric(field, device.device_labels | device.holder_labels), "values": values}


def test_what_is_held_and_idle_for_a_day(tmp_path, rules):
    day, hour = 288, 12
    series = [
        held("notebook", 0, f"4x{day + hour}"),
        held("trainer", 1, f"90x{day + hour}"),
        # Busy until an hour ago; held for an hour only; idle, but gone since; nobody's.
        held("bursty", 2, f"90x{day} 0x{hour}"),
        held("fresh", 3, f"_x{day} 0x{hour}"),
        held("ended", 4, f"0x{day - 1} stale"),
        held("", 5, f"0x{day + hour}"),
        held("mig-idle", 6, f"0.02x{day + hour}", ("1g.10gb", "7")),
        held("mig-busy", 6, f"0.5x{day + hour}", ("1g.10gb", "8")),
    ]
    idle = [Device("node-0", 0, "notebook"), Device("node-0", 6, "mig-idle", ("1g.10gb", "7"))]
    alerts = [Alert("GPUIdle", "info", None, device.device_labels | device.holder_labels) for device in idle]
    words = {
        "summary": "ml/notebook holds GPU 0 of node-0 and uses 4.0 % of it",
        "description": "NVIDIA H100 80GB HBM3, GPU-node-0-0, PCI 00000000:00:00.0. On average over 24 hours.",
    }
    test = {
        "interval": "5m",
        "input_series": series,
        "promql_expr_test": [
            {**firing(0, *alerts), "expr": 'ALERTS{alertname="GPUIdle", alertstate="firing"}', "eval_time": "25h"},
            {**firing(0), "expr": 'ALERTS{alertname="GPUIdle", alertstate="firing"}', "eval_time": "22h"},
        ],
    }
    only = {"notebook": series[0]}
    labels = idle[0].device_labels | idle[0].holder_labels | {"severity": "info"}
    wording = {
        "interval": "5m",
        "input_series": list(only.values()),
        "alert_rule_test": [
            {
                "eval_time": "25h",
                "alertname": "GPUIdle",
                "exp_alerts": [{"exp_labels": labels, "exp_annotations": words}],
            }
        ],
    }
    expect_from_rules(tmp_path, rules, [test, wording], evaluation="5m")
