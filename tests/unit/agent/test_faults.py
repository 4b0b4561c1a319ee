"""What faults do to the series of a GPU, and what is remembered of them."""

import pytest

from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState, LastXid, Reboot
from tests.unit.agent.kube import NOON, agent, broken, by_claim, hardware, node, scrape, split
from tests.unit.agent.series import UTIL, named, names, read, users, values

XID, COUNT, HEALTH = "DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_GPU_HEALTH_STATUS"
POWER, CLOCK, TEMPERATURE = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP"
FIRST, SECOND = ("node-0", 0, "", ""), ("node-0", 1, "", "")
DOUBLE_BIT = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"


def of_gpu(text, index):
    return {series.name for series in read(text) if series.gpu[1] == index}


def codes(text):
    return {
        series.gpu: (series.value, series.labels["err_code"], series.labels["err_msg"]) for series in named(text, XID)
    }


def test_a_gpu_off_the_bus_has_its_xid_and_nothing_else():
    text = scrape(node(hardware(states={0: broken()})), fields="default")
    assert of_gpu(text, 0) == {XID}
    assert of_gpu(text, 1) == set(names(text))
    assert codes(text) == {FIRST: (79, "79", "GPU has fallen off the bus"), SECOND: (0, "0", "No Error")}


def test_off_the_bus_the_exporter_knows_what_it_needs_no_gpu_for():
    text = scrape(node(hardware(states={0: broken()})), fields="all")
    assert of_gpu(text, 0) == {XID, COUNT, HEALTH}
    fallen = {(one.value, one.labels["health_error_code"]) for one in named(text, HEALTH) if one.gpu == FIRST}
    assert fallen == {(20, "DCGM_FR_FALLEN_OFF_BUS")}


def test_a_lost_gpu_has_no_series():
    text = scrape(node(hardware(states={0: broken("gpu-lost")})), fields="all")
    assert {series.gpu for series in read(text)} == {SECOND}


@pytest.mark.parametrize("kind", ["node-down", "node-unreachable", "driver-crash"])
def test_of_a_node_that_is_down_there_is_nothing(kind):
    down = hardware(faults=(Fault(kind, since="2026-06-01T11:00:00Z"),))
    text = scrape(node(down), node(hardware(index=1)))
    assert {series.labels["Hostname"] for series in read(text)} == {"node-1"}


def test_a_node_that_reboots_has_nothing_until_it_is_back():
    shown = agent(node(hardware(reboot=Reboot("2026-06-01T11:59:00Z", "2026-06-01T12:01:00Z"))))
    assert shown.text() == ""
    shown.put(node(hardware()))
    assert set(users(shown.text())) == {FIRST, SECOND}


def test_of_an_xid_in_mig_mode_every_instance_tells():
    text = scrape(node(hardware(1, states={0: split("1g.10gb:0", "1g.10gb:1", faults=broken().faults)})))
    assert names(text) == [XID]
    assert values(text, XID) == {("node-0", 0, "1g.10gb", "7"): 79, ("node-0", 0, "1g.10gb", "8"): 79}


def test_the_holder_of_a_broken_gpu_is_shown_and_works_on():
    holder, granted = by_claim("train", "gpu-0")
    text = scrape(node(hardware(states={0: broken(code=31)})), holder, granted)
    assert users(text)[FIRST] == [("default", "train", "main", "")]
    assert values(text, UTIL) == {FIRST: 85, SECOND: 0}
    assert codes(text)[FIRST] == (31, "31", "GPU memory page fault")


def test_the_last_xid_stays_when_its_fault_is_gone():
    text = scrape(node(hardware(states={0: GpuState(last_xid=LastXid(48, "2026-06-01T10:00:00Z"))})))
    assert codes(text)[FIRST][:2] == (48, "48")
    assert UTIL in of_gpu(text, 0)


def test_of_several_xids_the_latest_is_shown():
    faults = tuple(Fault("xid", code, since=f"2026-06-01T{hour}:00:00Z") for code, hour in ((31, "11"), (94, "09")))
    text = scrape(node(hardware(states={0: GpuState(faults=faults, last_xid=LastXid(13, "2026-06-01T10:00:00Z"))})))
    assert codes(text)[FIRST][0] == 31


def test_a_fault_that_brings_an_xid_along_shows_it():
    text = scrape(node(hardware(1, states={0: broken("ecc-uncorrectable")})), fields=f"{XID},{DOUBLE_BIT}")
    assert codes(text)[FIRST][:2] == (48, "48")
    assert values(text, DOUBLE_BIT) == {FIRST: 1}


def test_what_a_fault_has_counted_stays_and_is_counted_again_the_next_time():
    shown = agent(node(hardware(1)), fields=DOUBLE_BIT)
    counted = []
    for state in (GpuState(), broken(code=48), broken(code=48), GpuState(), broken(code=95)):
        shown.put(node(hardware(1, states={0: state})))
        counted.append(values(shown.text(), DOUBLE_BIT)[FIRST])
    assert counted == [0, 1, 1, 1, 2]


def test_of_two_faults_that_count_the_same_one_may_go():
    shown, both = agent(fields=DOUBLE_BIT), (*broken(code=48).faults, *broken(code=95).faults)
    counted = []
    for faults in (both, both[:1], both):
        shown.put(node(hardware(1, states={0: GpuState(faults=faults)})))
        counted.append(values(shown.text(), DOUBLE_BIT)[FIRST])
    assert counted == [2, 2, 3]


def test_a_throttled_gpu_is_as_busy_at_half_its_clock():
    holder, granted = by_claim("train", "gpu-0")
    other, theirs = by_claim("other", "gpu-1")
    fields = f"{UTIL},{POWER},{CLOCK},{TEMPERATURE},DCGM_FI_DEV_THERMAL_VIOLATION,DCGM_EXP_CLOCK_EVENTS_COUNT"
    shown = agent(node(hardware(states={0: broken("thermal")})), holder, granted, other, theirs, fields=fields)
    text = shown.text()
    assert values(text, UTIL) == {FIRST: 85, SECOND: 85}
    assert values(text, CLOCK) == {FIRST: 990, SECOND: 1980}
    assert values(text, TEMPERATURE)[FIRST] == 89
    assert values(text, POWER)[FIRST] < values(text, POWER)[SECOND]
    events = [series for series in named(text, "DCGM_EXP_CLOCK_EVENTS_COUNT") if series.gpu == FIRST]
    assert [series.labels["clock_event"] for series in events] == ["hw_slowdown", "hw_thermal"]
    later = values(shown.text(NOON + 10), "DCGM_FI_DEV_THERMAL_VIOLATION")
    assert later == {FIRST: 10 * 10**9, SECOND: 0}


def test_an_idle_gpu_is_not_throttled():
    shown = agent(node(hardware(1, states={0: broken("thermal")})), fields="violations")
    shown.text()
    assert values(shown.text(NOON + 10), "DCGM_FI_DEV_THERMAL_VIOLATION") == {FIRST: 0}


def test_a_link_that_is_down_carries_nothing():
    holder, granted = by_claim("train", "gpu-0")
    total = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
    risen = []
    for state in (GpuState(), broken("nvlink-down")):
        shown = agent(node(hardware(1, states={0: state})), holder, granted, fields=total)
        before = values(shown.text(), total)[FIRST]
        risen.append(values(shown.text(NOON + 100), total)[FIRST] - before)
    assert risen[1] == pytest.approx(risen[0] * 17 / 18)


def test_xids_are_counted_while_they_are_within_the_window():
    state = broken(code=31, since="2026-06-01T11:58:00Z")
    shown = agent(node(hardware(1, states={0: state})), fields=COUNT)

    def counted(moment):
        return [(series.value, series.labels.get("xid")) for series in named(shown.text(moment), COUNT)]

    assert counted(NOON) == [(1, "31")]
    assert counted(NOON + 179) == [(1, "31")]
    assert counted(NOON + 180) == [(0, None)]


def test_health_tells_of_the_watch_that_an_xid_belongs_to():
    def failing(state):
        text = scrape(node(hardware(1, states={0: state})), fields=HEALTH)
        return {
            series.labels["health_watch"]: (series.value, series.labels["health_error_code"])
            for series in named(text, HEALTH)
            if series.value
        }

    watches = {series.labels["health_watch"] for series in named(scrape(node(hardware(1)), fields=HEALTH), HEALTH)}
    assert watches == {"PCIE", "NVLINK", "PMU", "MCU", "MEM", "SM", "INFOROM", "THERMAL", "POWER", "DRIVER"}
    assert failing(GpuState()) == {}
    assert failing(broken("thermal")) == {"THERMAL": (10, "DCGM_FR_CLOCK_THROTTLE_THERMAL")}
    assert failing(broken(code=31)) == {"MEM": (10, "DCGM_FR_XID_ERROR")}
    assert failing(broken(code=48)) == dict.fromkeys(watches, (20, "DCGM_FR_XID_ERROR"))


def test_peers_are_linked_where_there_is_nvlink():
    def links(model):
        text = scrape(node(hardware(3, model=model)), fields="p2p")
        return [
            (series.gpu[1], series.labels["peer_gpu"], series.labels["link_status"], series.value)
            for series in named(text, "DCGM_EXP_P2P_STATUS")
        ]

    assert links("h100-sxm5-80gb")[:3] == [(0, "1", "OK", 0), (0, "2", "OK", 0), (1, "0", "OK", 0)]
    assert {link[2:] for link in links("t4")} == {("NotSupported", 5)}
