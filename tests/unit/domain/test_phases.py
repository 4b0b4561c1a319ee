"""Phases: what is understood, what is refused and why, and what they come to over time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ghost.domain.phase_parsing import PRESETS, parse_memory, parse_percent, parse_phases, parse_span
from kubectl_ghost.domain.phases import Interruption, Load, LoadPlan, Memory, Phase

TRAINING = "download=2m,warmup=5m:util=20..60,training:util=95,checkpoint=30s/10m"


def test_the_notation():
    assert parse_phases(TRAINING) == LoadPlan(
        (
            Phase("download", 120, 0, 0, Memory(2)),
            Phase("warmup", 300, 20, 60, Memory(40)),
            Phase("training", math.inf, 95, 95, Memory(80)),
        ),
        Interruption("checkpoint", 30, 600, 5),
    )
    assert parse_phases(" work = 1h30m : util=37.5% : memory=40Gi ") == LoadPlan(
        (Phase("work", 5400, 37.5, 37.5, Memory(mib=40960)),)
    )
    assert parse_phases("serve:util=20..60") == LoadPlan((Phase("serve", math.inf, 40, 40, Memory(60), 20),))
    assert parse_phases("training") == parse_phases(PRESETS["training"])


@pytest.mark.parametrize(
    ("age", "utilization", "phase"),
    [
        (-1, 0, ""),
        (0, 0, "download"),
        (119.9, 0, "download"),
        (120, 20, "warmup"),
        (270, 40, "warmup"),
        (420, 95, "training"),
        (420 + 569, 95, "training"),
        (420 + 570, 5, "checkpoint"),
        (420 + 599, 5, "checkpoint"),
        (420 + 600, 95, "training"),
        (420 + 6000 + 575, 5, "checkpoint"),
    ],
)
def test_a_training_over_time(age, utilization, phase):
    load = parse_phases(TRAINING).at(age)
    assert (load.utilization, load.phase) == (utilization, phase)


def test_what_comes_back_has_the_memory_of_its_phase_or_its_own():
    plan = parse_phases("training:memory=70%,checkpoint=30s/10m")
    assert (plan.at(1).memory, plan.at(575).memory) == (Memory(70), Memory(70))
    plan = parse_phases("training:memory=70%,checkpoint=30s/10m:memory=4Gi")
    assert (plan.at(1).memory, plan.at(575).memory) == (Memory(70), Memory(mib=4096))


def test_a_range_in_what_comes_back_is_its_middle():
    load = parse_phases("training,checkpoint=30s/10m:util=0..40").at(575)
    assert load == Load(20, Memory(80), 20, "checkpoint")


def test_what_has_no_lasting_phase_idles_in_the_end_and_keeps_its_memory():
    plan = parse_phases("a=10s:util=50:memory=30%")
    assert plan.at(10) == Load(0, Memory(30), phase="idle")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_what_they_say(name):
    plan = parse_phases(name)
    assert plan.phases[-1].seconds == math.inf
    steady = plan.at(7200).utilization
    assert {"training": steady > 90, "inference": 40 <= steady <= 50, "notebook-idle": 0 < steady < 5}[name]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is no phase"),
        ("a b=3m", "'a b=3m' is no phase"),
        ("warmup=abc", "invalid duration 'abc'"),
        ("warmup=0", "'warmup' lasts no time"),
        ("warmup,training", "phase 'warmup' has no duration and is not the last one"),
        ("training:util=101", "'101' is no percentage from 0 to 100"),
        ("training:util=-5", "'-5' is no percentage"),
        ("training:utl=5", "'utl=5' is neither util=... nor memory=..."),
        ("training:memory=80", "'80' is no amount of memory, such as 40Gi or 60%"),
        ("checkpoint=30s/10m", "comes back within the phase before it, and there is none"),
        ("warmup=5m,checkpoint=30s/10m", "'checkpoint' comes back within a phase without a duration, and 'warmup' has"),
        ("training,checkpoint=10m/30s", "less than the '30s' after which it comes back"),
        ("training,a=1s/" + "0s" * 999, "less than the '(0s){30}...' after which it comes back"),
        ("training,a=1s/1m,b=1s/2m", "only one phase can come back, not a and b"),
        ("checkpoint=30s/10m,training", "phase 'checkpoint' comes back within the phase before it, and there is none"),
        ("a=1m,checkpoint=30s/10m,training", "'checkpoint' comes back within a phase without a duration, and 'a' has"),
        ("training:util=5:util=90", "'training': util is given twice"),
        ("training:util=5: memory=5% : memory=6%", "'training': memory is given twice"),
        ("warmup=5m,util=50", "'util' is a figure of a phase, as in training:util=95"),
        ("memory", "'memory' is a figure of a phase, as in training:memory=60%"),
        ("a:memory=" + "x" * 99, "^'x{60}...' is no amount of memory, such as 40Gi or 60%$"),
        (",".join(["a=1s"] * 101), "more than 100 phases"),
    ],
)
def test_what_is_refused_and_why(text, words):
    with pytest.raises(ValueError, match=words.replace("...", r"\.\.\.")) as refusal:
        parse_phases(text)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("text", "value"), [("37", 37), ("37%", 37), (" 2.5 ", 2.5), ("0", 0), ("100%", 100), ("30 %", 30)]
)
def test_percentages(text, value):
    assert parse_percent(text) == value


@pytest.mark.parametrize("text", ["", "%", "101", "-1", "abc", "0x10", "1e2", "٣٠", "9" * 400, "30  %", "nan"])
def test_no_percentages(text):
    with pytest.raises(ValueError, match="is no percentage from 0 to 100"):
        parse_percent(text)


def test_spans_go_either_way():
    assert parse_span("20..60") == (20, 60)
    assert parse_span("10-30") == (10, 30)
    assert parse_span("60..20") == (60, 20)
    assert parse_span("30") == (30, 30)


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("60%", Memory(60)),
        ("40Gi", Memory(mib=40960)),
        ("1G", Memory(mib=953)),
        ("1Mi", Memory(mib=1)),
        ("0", Memory(mib=0)),
    ],
)
def test_memory(text, memory):
    assert parse_memory(text) == memory


@pytest.mark.parametrize("text", ["80", "-1Gi", "1e999", "inf", "", "Gi", "1023Ki", "16Ei", "101%", "٤Gi"])
def test_no_memory(text):
    with pytest.raises(ValueError, match=r"is no amount of memory, such as 40Gi or 60%|is no percentage from 0 to 100"):
        parse_memory(text)


def test_memory_never_exceeds_the_device():
    assert Memory(60).of(1000) == 600
    assert Memory(mib=40960).of(1000) == 1000
    assert Memory().of(1000) == 0


@st.composite
def plans(draw):
    percent = st.integers(0, 100)
    phases = [
        f"p{number}={draw(st.integers(1, 90))}s:util={draw(percent)}..{draw(percent)}"
        for number in range(draw(st.integers(0, 3)))
    ]
    if draw(st.booleans()) or not phases:
        phases.append(f"last:util={draw(percent)}")
        if draw(st.booleans()):
            period = draw(st.integers(2, 60))
            phases.append(f"back={draw(st.integers(1, period - 1))}s/{period}s:util={draw(percent)}")
    return parse_phases(",".join(phases))


@given(plans(), st.floats(-50, 400), st.floats(0, 300), st.floats(0, 300))
def test_the_integral_is_additive_and_grows(plan, start, first, second):
    middle, end = start + first, start + first + second
    whole = plan.busy_seconds(start, end)
    assert whole == pytest.approx(plan.busy_seconds(start, middle) + plan.busy_seconds(middle, end), abs=1e-6)
    assert -1e-9 <= whole <= first + second + 1e-6


@given(plans(), st.integers(0, 200))
def test_the_integral_is_that_of_what_is_shown(plan, start):
    # Every change is at a whole second, so that the middle of a tenth of a second is exact, ramps included.
    steps = [start + (step + 0.5) / 10 for step in range(1000)]
    shown = sum(plan.at(age).utilization for age in steps) / 10 / 100
    assert plan.busy_seconds(start, start + 100) == pytest.approx(shown, abs=1e-6)


@given(plans(), st.floats(-100, 10_000))
def test_utilisation_is_a_percentage_at_any_age(plan, age):
    assert 0 <= plan.at(age).utilization <= 100
