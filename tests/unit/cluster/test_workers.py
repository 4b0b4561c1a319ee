"""Order, bounds, and what becomes of the rest when one fails."""

import itertools
import subprocess
import sys
import threading

import pytest

from kubectl_ghost.cluster.workers import run_ordered


def test_results_come_in_the_order_of_the_items():
    late = threading.Event()

    def slow_start(item):
        if item == 0:
            late.wait(5)
        if item == 3:
            late.set()
        return item * 2

    assert list(run_ordered(slow_start, range(200), workers=4)) == [item * 2 for item in range(200)]
    assert list(run_ordered(slow_start, [])) == []


def test_the_input_is_taken_as_it_is_needed():
    taken = []

    def endless():
        for item in itertools.count():
            taken.append(item)
            yield item

    results = run_ordered(lambda item: item, endless(), workers=2)
    assert list(itertools.islice(results, 10)) == list(range(10))
    results.close()
    assert len(taken) < 40


def test_an_error_stops_what_has_not_begun_and_keeps_what_has():
    begun, gate = [], threading.Barrier(3, timeout=5)

    def work(item):
        begun.append(item)
        if item < 3:
            gate.wait()
        if item in {0, 2}:
            raise ValueError(f"item {item}")
        return item

    got = []
    with pytest.raises(ValueError, match="item 0") as caught:
        got.extend(run_ordered(work, range(1000), workers=3))
    assert 1 in got, "it was under way, and it happened"
    assert sorted(got) == got == sorted(set(begun) - {0, 2})
    assert len(begun) < 20
    assert caught.value.__notes__ == ["also: item 2"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, RuntimeError])
def test_leaving_the_loop_waits_for_what_is_under_way(interruption):
    begun, ended = [], []

    def work(item):
        begun.append(item)
        ended.append(item)

    def consume():
        for _ in results:
            raise interruption

    results = run_ordered(work, range(10_000), workers=2)
    with pytest.raises(interruption):
        consume()
    results.close()
    count = len(begun)
    assert count < 100
    assert sorted(begun) == sorted(ended)
    assert threading.active_count() < 20
    assert len(begun) == count


HANGING = """
import os, signal, threading, time
from kubectl_ghost.cluster.workers import run_ordered

def interrupt():
    for _ in range(2):
        begun.wait()
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

def hang(item):
    begun.set()
    threading.Event().wait()

begun = threading.Event()
threading.Thread(target=interrupt, daemon=True).start()
try:
    list(run_ordered(hang, range(100)))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_second_interrupt_leaves_behind_what_never_ends():
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_ctrl_c_at_the_very_end_is_not_lost(monkeypatch):
    real = threading.Thread.join

    def interrupted(self, timeout=None):
        real(self, timeout)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(run_ordered(lambda number: number, range(3)))
