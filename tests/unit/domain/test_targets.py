"""Targets: the ways to name GPUs, and the same draw from the same seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.targets import NodeTarget, check_gpus, choose, parse_targets


@pytest.mark.parametrize(
    ("words", "targets"),
    [
        (["node-3/gpu-2"], [NodeTarget("node-3", (2,))]),
        (["node-3", "gpu-2"], [NodeTarget("node-3", (2,))]),
        (["node-3", "gpu-2", "gpu-0"], [NodeTarget("node-3", (0, 2))]),
        (["node-3"], [NodeTarget("node-3")]),
        (["node-3", "node-1"], [NodeTarget("node-3"), NodeTarget("node-1")]),
        (["node-3/gpu-1", "node-3/gpu-1", "node-3/gpu-0"], [NodeTarget("node-3", (0, 1))]),
        (["gpu-0", "gpu-1"], [NodeTarget("gpu-0", (1,))]),
        (["node-1/gpu-1", "gpu-2"], [NodeTarget("node-1", (1,)), NodeTarget("gpu-2")]),
    ],
)
def test_words(words, targets):
    assert parse_targets(words) == targets


@pytest.mark.parametrize("word", ["node-3/", "/gpu-1", "node-3/gpu", "node-3/gpu-01", "node-3/2", "node-3/gpu--1", ""])
def test_a_word_of_another_form_is_refused(word):
    with pytest.raises(InputError):
        parse_targets([word])


def test_a_gpu_that_the_node_does_not_have_is_refused():
    assert check_gpus(NodeTarget("n"), 2) == (0, 1)
    assert check_gpus(NodeTarget("n", (1,)), 2) == (1,)
    with pytest.raises(InputError, match="no gpu-2"):
        check_gpus(NodeTarget("n", (2,)), 2)


@given(st.integers(0, 20), st.integers())
def test_a_draw_is_a_part_in_order_and_repeatable(number, seed):
    pairs = [("n", index) for index in range(20)]
    drawn = choose(pairs, number, seed)
    assert len(drawn) == number
    assert drawn == sorted(drawn)
    assert drawn == choose(pairs, number, seed)


def test_seeds_differ_and_too_many_are_refused():
    pairs = [("n", index) for index in range(100)]
    assert choose(pairs, 10, 1) != choose(pairs, 10, 2)
    with pytest.raises(InputError, match="101"):
        choose(pairs, 101, 1)
