"""What pods say about their load, and what becomes of it in the series of their GPUs."""

import pytest

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.hardware import Advertise, GpuState, MigMode, Occupancy, OccupancyKind, Sharing, SharingKind
from kubectl_ghost.domain.mig import MigInstance
from tests.unit.agent.kube import NOON, agent, by_claim, hardware, node, pod, scrape, split
from tests.unit.agent.series import UTIL, users, values

ENGINE, USED, POWER = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE"
FIRST, SECOND = ("node-0", 0, "", ""), ("node-0", 1, "", "")
USABLE = 81559 - 480
"""MiB of an H100 without what the driver keeps."""


def loaded(moment=NOON, options=None, **more):
    """Utilisation and used memory of a pod's GPU."""
    text = scrape(
        node(hardware(1)),
        *by_claim("train", "gpu-0", **more),
        moment=moment,
        **{"fields": f"{UTIL},{USED}", **(options or {})},
    )
    return values(text, UTIL)[FIRST], values(text, USED)[FIRST]


def test_a_pod_that_says_nothing_works():
    assert loaded() == (85, int(USABLE * 0.6))


@pytest.mark.parametrize("phase", ["Pending", "Unknown", ""])
def test_a_pod_that_does_not_run_has_its_gpu_and_does_nothing(phase):
    assert loaded(phase=phase) == (0, 0)
    assert users(scrape(node(hardware(1)), *by_claim("a", "gpu-0", phase=phase)))[FIRST] == [
        ("default", "a", "main", "")
    ]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_has_nothing(phase):
    assert loaded(phase=phase) == (0, 0)
    assert users(scrape(node(hardware(1)), *by_claim("a", "gpu-0", phase=phase)))[FIRST] == []


def test_annotations_decide():
    said = {keys.GPU_UTIL_ANNOTATION: "37", keys.GPU_MEMORY_ANNOTATION: "12Gi"}
    assert loaded(annotations=said) == (37, 12 * 1024)


def test_phases_go_by_the_age_of_the_pod():
    said = {keys.PHASES_ANNOTATION: "download=2m,warmup=10m:util=20..60,training:util=95:memory=50%"}
    started = "2026-06-01T12:00:00Z"
    ages = [-1, 0, 119, 120, 420, 720, 100000]
    found = [loaded(NOON + age, annotations=said, started=started)[0] for age in ages]
    assert found == [0, 0, 0, 20, 40, 95, 95]


def test_a_time_scale_makes_pods_older():
    said = {keys.PHASES_ANNOTATION: "download=1h,training:util=95"}
    at_noon = {"annotations": said, "started": "2026-06-01T12:00:00Z"}
    assert [loaded(NOON + age, {"time_scale": 60.0}, **at_noon)[0] for age in (59, 60)] == [0, 95]


@pytest.mark.parametrize("text", ["much", "101", "-1", "", "nan", "\uff15\uff10"])
def test_nonsense_is_told_and_counts_as_not_said(text):
    shown = agent(node(hardware(1)), *by_claim("train", "gpu-0", annotations={keys.GPU_UTIL_ANNOTATION: text}))
    assert values(shown.text(), UTIL) == {FIRST: 85}
    (problem,) = shown.problems
    assert problem.startswith(f'pod "default/train": {keys.GPU_UTIL_ANNOTATION}: ')


def test_pods_on_one_gpu_add_up_to_no_more_than_all_of_it():
    declared = hardware(1, advertise=Advertise.DEVICE_PLUGIN, sharing=Sharing(SharingKind.TIME_SLICING, 3))
    said = {keys.GPU_UTIL_ANNOTATION: "30", keys.GPU_MEMORY_ANNOTATION: "30%"}
    for number, (busy, used) in enumerate([(0, 0), (30, 24323), (60, 48646), (90, 72969)]):
        pods = [pod(name, gpus=1, annotations=said) for name in "abc"[:number]]
        text = scrape(node(declared), *pods)
        assert (values(text, UTIL)[FIRST], values(text, USED)[FIRST]) == (busy, used)
    greedy = [pod(name, gpus=1) for name in "abc"]
    text = scrape(node(declared), *greedy)
    assert (values(text, UTIL)[FIRST], values(text, USED)[FIRST]) == (100, USABLE)


def test_a_pod_with_two_shares_of_a_gpu_puts_its_load_on_it_once():
    declared = hardware(1, advertise=Advertise.DEVICE_PLUGIN, sharing=Sharing(SharingKind.TIME_SLICING, 3))
    said = {keys.GPU_UTIL_ANNOTATION: "30"}
    assert values(scrape(node(declared), pod("a", gpus=2, annotations=said)), UTIL) == {FIRST: 30}


def test_an_instance_at_full_load_is_its_share_of_the_gpu():
    said = {keys.GPU_UTIL_ANNOTATION: "100"}
    declared = hardware(1, states={0: split("1g.10gb:0", "3g.40gb:4")})
    idle = values(scrape(node(hardware(1))), POWER)[FIRST]
    text = scrape(node(declared), *by_claim("infer", "gpu-0-mig-3g40gb-9-4", annotations=said))
    small, large = ("node-0", 0, "1g.10gb", "7"), ("node-0", 0, "3g.40gb", "2")
    assert values(text, ENGINE) == {small: 0, large: 1}
    # Both show the board's power: at 3 of 7 compute slices that is 3/7 of the way to full load.
    full = values(scrape(node(hardware(1)), *by_claim("train", "gpu-0", annotations=said)), POWER)[FIRST]
    assert values(text, POWER) == {
        part: pytest.approx(idle + (full - idle) * 3 / 7, abs=1e-5) for part in (small, large)
    }


def test_a_gpu_that_is_declared_busy_works_for_nobody():
    text = scrape(node(hardware(states={0: GpuState(occupancy=Occupancy())})))
    assert values(text, UTIL) == {FIRST: 85, SECOND: 0}
    assert users(text) == {FIRST: [], SECOND: []}


def test_a_gpu_that_is_to_be_held_by_a_filler_works_when_the_filler_does():
    declared = hardware(states={0: GpuState(occupancy=Occupancy(OccupancyKind.PODS))})
    assert values(scrape(node(declared)), UTIL) == {FIRST: 0, SECOND: 0}
    assert values(scrape(node(declared), *by_claim("filler", "gpu-0")), UTIL) == {FIRST: 85, SECOND: 0}


def test_a_part_that_is_declared_busy_works_and_the_others_do_not():
    busy = GpuState(occupancy=Occupancy(instances=(MigInstance("3g.40gb", 0),)))
    declared = hardware(1, states={0: busy}, mig=MigMode.DYNAMIC)
    held, granted = by_claim("infer", "gpu-0-mig-1g10gb-19-5", phase="Pending")
    text = scrape(node(declared), held, granted)
    assert values(text, ENGINE) == {("node-0", 0, "3g.40gb", "1"): 0.85, ("node-0", 0, "1g.10gb", "12"): 0}


def test_without_jitter_nothing_moves():
    assert len({loaded(NOON + 7 * step) for step in range(100)}) == 1


def test_jitter_stays_within_its_bounds_and_is_the_same_for_the_same_seed():
    said = {keys.GPU_UTIL_ANNOTATION: "50"}

    def course(**options):
        return [loaded(NOON + 15 * step, options, annotations=said)[0] for step in range(40)]

    one = course(jitter=20.0, seed=1)
    assert one == course(jitter=20.0, seed=1)
    assert one != course(jitter=20.0, seed=2)
    assert 40 <= min(one) < 50 < max(one) <= 60


def test_a_range_is_what_jitter_goes_through_and_its_middle_without():
    said = {keys.SIMULATED_UTILIZATION_ANNOTATION: "10-50"}
    assert loaded(annotations=said)[0] == 30
    course = [loaded(NOON + 15 * step, {"jitter": 1.0, "seed": 1}, annotations=said)[0] for step in range(60)]
    assert 10 <= min(course) < 20
    assert 40 < max(course) <= 50


def test_an_idle_gpu_does_not_jitter():
    shown = agent(node(hardware(1)), jitter=50.0)
    assert {values(shown.text(NOON + 15 * step), UTIL)[FIRST] for step in range(20)} == {0}
