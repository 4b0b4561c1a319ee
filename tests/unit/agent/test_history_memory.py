"""A long past of a large node is written GPU by GPU: memory is that of one of them, and nothing is lost by it."""

from __future__ import annotations

import io
import tracemalloc
from itertools import pairwise

from ghost_agent.fleet import NODES, PODS, Fleet
from ghost_agent.history import Period, write_history
from ghost_agent.options import agent_options
from tests.unit.agent.kube import NOON, hardware, node, pod

HOUR = 3600.0


class Nowhere:
    def write(self, text):
        return len(text)


def records(gpus, *pods):
    fleet = Fleet()
    for collection, item in ((NODES, node(hardware(gpus))), *((PODS, item) for item in pods)):
        fleet.put(collection, fleet.keep(collection, item))
    return fleet.records()


def written(known, period):
    sink = io.StringIO()
    counts = write_history(known, agent_options(), period, sink)
    return sink.getvalue().splitlines(), counts


def test_eight_gpus_take_no_more_memory_than_one():
    def peak(gpus):
        known = records(gpus)
        period = Period(NOON - 6 * HOUR, NOON, 60.0)
        write_history(known, agent_options(), Period(NOON - 60, NOON, 60.0), Nowhere())
        tracemalloc.start()
        write_history(known, agent_options(), period, Nowhere())
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(8) < 1.5 * peak(1)


def test_all_gpus_are_there_series_by_series_in_time():
    works = pod("train", on="node-0", gpus=2, recorded="gpu-1,gpu-3", started="2026-06-01T11:00:00Z")
    period = Period(NOON - 2 * HOUR, NOON, 600.0)
    lines, counts = written(records(4, works), period)
    util = [line.rpartition("} ") for line in lines if line.startswith("DCGM_FI_DEV_GPU_UTIL{")]
    series = dict.fromkeys(label for label, _, _ in util)
    assert [label for label, _, _ in util] == [
        label for label in series for _ in range(sum(other == label for other, _, _ in util))
    ]
    by_gpu = {gpu: [rest.split() for label, _, rest in util if f'gpu="{gpu}"' in label] for gpu in range(4)}
    moments = [f"{NOON - 2 * HOUR + 600 * step:.0f}" for step in range(13)]
    for gpu in (0, 2):
        assert by_gpu[gpu] == [["0", moment] for moment in moments]
    for gpu in (1, 3):
        assert [moment for _, moment in by_gpu[gpu]] == moments
        assert [value == "0" for value, _ in by_gpu[gpu]] == [True] * 6 + [False] * 7
    samples = [line for line in lines if not line.startswith("#")]
    assert counts == (len(dict.fromkeys(line.rpartition("} ")[0] for line in samples)), len(samples))


def test_counters_of_every_gpu_rise_through_all_of_it():
    works = pod("train", on="node-0", gpus=2, recorded="gpu-0,gpu-1", started="2026-06-01T11:00:00Z")
    lines, _ = written(records(2, works), Period(NOON - 2 * HOUR, NOON, 600.0))
    for gpu in range(2):
        energy = sorted(
            (float(moment), int(value))
            for label, _, rest in (line.rpartition("} ") for line in lines)
            if label.startswith(f'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="{gpu}"')
            for value, moment in [rest.split()]
        )
        values = [value for _, value in energy]
        assert len(values) == 13
        assert all(later > earlier for earlier, later in pairwise(values))
