"""What pods say about their load: ours, fake-gpu-operator's, nothing, and nonsense, which is never fatal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ghost.domain.load import DEFAULT_PLAN, LOAD_ANNOTATIONS, load_plan
from kubectl_ghost.domain.phase_parsing import parse_phases
from kubectl_ghost.domain.phases import Memory, constant

PHASES, UTIL, MEMORY, THEIR_UTIL, FRACTION = LOAD_ANNOTATIONS


def plan(**annotations):
    names = {"phases": PHASES, "util": UTIL, "memory": MEMORY, "theirs": THEIR_UTIL, "fraction": FRACTION}
    return load_plan({"annotations": {names[key]: value for key, value in annotations.items()}})


def test_the_names_of_the_annotations():
    assert LOAD_ANNOTATIONS == (
        "kubectl-ghost.dev/phases",
        "kubectl-ghost.dev/gpu-util",
        "kubectl-ghost.dev/gpu-memory",
        "run.ai/simulated-gpu-utilization",
        "gpu-fraction",
    )


@pytest.mark.parametrize("metadata", [{}, {"annotations": None}, {"annotations": {"other": "1"}}])
def test_a_pod_that_says_nothing(metadata):
    assert load_plan(metadata) == (DEFAULT_PLAN, ())
    assert (DEFAULT_PLAN.at(5).utilization, DEFAULT_PLAN.at(5).memory) == (85, Memory(60))


def test_ours():
    assert plan(util="37%", memory="40Gi") == (constant(37, Memory(mib=40960)), ())
    assert plan(util="20..60") == (constant(40, Memory(60), 20), ())
    assert plan(phases="training") == (parse_phases("training"), ())


def test_a_declared_memory_holds_in_all_phases():
    found, problems = plan(phases="download=2m,training", memory="50%")
    assert problems == ()
    assert {phase.memory for phase in found.phases} == {Memory(50)}
    assert [phase.name for phase in found.phases] == ["download", "training"]
    found, _ = plan(phases="training,checkpoint=30s/10m:memory=90%", memory="50%")
    assert found.at(575).memory == Memory(50)


def test_fake_gpu_operators():
    assert plan(theirs="30") == (constant(30, Memory(60)), ())
    assert plan(theirs="10-30") == (constant(20, Memory(60), 10), ())
    assert plan(fraction="0.5") == (constant(85, Memory(50)), ())


def test_ours_win():
    assert plan(util="10", theirs="90", memory="20%", fraction="0.9") == (constant(10, Memory(20)), ())
    assert plan(phases="idle", util="90")[0] == parse_phases("idle")


@pytest.mark.parametrize(
    ("text", "utilization"), [("80%", 80), ("0.5", 0.5), ("30-10", 20), ("0", 0), ("100", 100), (" 7 ", 7)]
)
def test_what_fake_gpu_operator_gets_wrong_is_what_it_says(text, utilization):
    found, problems = plan(theirs=text)
    assert (found.at(1).utilization, problems) == (utilization, ())


@pytest.mark.parametrize("text", ["abc", "", "-5", "101", "10-", "٣٠", "9" * 1000, "1-2-3", "null"])
def test_nonsense_is_told_and_counts_as_not_said(text):
    found, (problem,) = plan(theirs=text)
    assert found == DEFAULT_PLAN
    assert problem.startswith("run.ai/simulated-gpu-utilization: ")
    assert problem.endswith(" is no percentage from 0 to 100")
    assert len(problem) < 200


def test_nonsense_of_ours_leaves_theirs():
    found, (problem,) = plan(util="abc", theirs="30")
    assert found == constant(30, Memory(60))
    assert problem == "kubectl-ghost.dev/gpu-util: 'abc' is no percentage from 0 to 100"


def test_nonsense_is_told_also_where_something_else_decides():
    found, problems = plan(phases="idle", util="abc", memory="1Gi", theirs="-1", fraction="2")
    assert found == plan(phases="idle", memory="1Gi")[0]
    assert [problem.partition(": ")[0] for problem in problems] == [UTIL, THEIR_UTIL, FRACTION]


@pytest.mark.parametrize(("text", "percent"), [("0.5", 50), ("1", 100), (" 1.0 ", 100), ("50%", 50)])
def test_fractions(text, percent):
    assert plan(fraction=text) == (constant(85, Memory(percent)), ())


@pytest.mark.parametrize("text", ["0", "1.5", "-1", "half", "nan", "", "inf", "0%", "0_0.5", "\u0660.\u0665", "0,5"])
def test_no_fraction(text):
    found, (problem,) = plan(fraction=text)
    assert found == DEFAULT_PLAN
    assert problem == f"gpu-fraction: {text!r} is no fraction above 0 and up to 1, such as 0.5"


PIECES = [*"0159.,:=/%- x\u0663", "..", "util", "memory", "training", "warmup", "s", "m", "Gi", "5m", "30s/10m"]
TEXTS = st.text(max_size=30) | st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(LOAD_ANNOTATIONS, TEXTS)), st.floats(-9, 1e6))
def test_no_text_is_fatal(annotations, age):
    found, problems = load_plan({"annotations": annotations})
    assert 0 <= found.at(age).utilization <= 100
    assert 0 <= found.at(age).memory.of(81079) <= 81079
    assert len(problems) <= len(annotations)
    assert all(len(problem) < 300 and problem.isprintable() for problem in problems)
