"""The agent's options: what is refused and in which words, and that they survive the way into a pod."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost_agent.__main__ import _parser
from ghost_agent.options import COMPATIBILITY, Shard, agent_options, parse_compatibility, parse_shard
from kubectl_ghost.domain.dcgm_fields import default_fields
from kubectl_ghost.domain.errors import InputError

WORDS = "hostname, old-namespace, pod-labels, pod-uid, mig-parent"


def refusal(**options):
    with pytest.raises(InputError) as found:
        agent_options(**options)
    return found.value.message, found.value.hint


@pytest.mark.parametrize(
    ("text", "shard"), [("1/1", Shard(1, 1)), ("2/4", Shard(2, 4)), ("9999/9999", Shard(9999, 9999))]
)
def test_shards(text, shard):
    assert parse_shard(text) == shard
    assert str(shard) == text


@pytest.mark.parametrize("text", ["5/4", "0/4", "4", "1/0", "-1/4", "1/4/8", "a/b", " 1/2", "1/10000", "1/2\n"])
def test_there_is_no_such_shard(text):
    assert refusal(shard=text) == (f'invalid --shard "{text}"', "Write 2/4 for the second of four agents.")


def test_words_of_compat():
    assert parse_compatibility("hostname, pod-uid,,") == {"hostname", "pod-uid"}
    assert agent_options(compat=["hostname", "old-namespace,hostname"]).compatibility == {"hostname", "old-namespace"}
    assert ", ".join(COMPATIBILITY) == WORDS
    assert refusal(compat=["hostname", "Hostname"]) == ('unknown --compat "Hostname"', f"It is one or more of: {WORDS}")


@pytest.mark.parametrize("jitter", [-0.1, 100.5, float("nan"), float("inf")])
def test_jitter_is_a_percentage(jitter):
    assert refusal(jitter=jitter) == (f"invalid --jitter {jitter:g}", "It is a percentage from 0 to 100.")


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 1e7, 1e-7])
def test_time_does_not_stand_still_or_run_back(scale):
    hint = "It is a number from 0.000001 to 1000000: 60 makes a minute an hour."
    assert refusal(time_scale=scale) == (f"invalid --time-scale {scale:g}", hint)


def test_fields_by_group_by_name_and_by_file():
    assert agent_options().fields == default_fields()
    assert [field.name for field in agent_options(fields="DCGM_FI_DEV_GPU_UTIL").fields] == ["DCGM_FI_DEV_GPU_UTIL"]
    assert [field.name for field in agent_options(fields="all", counters="DCGM_FI_DEV_GPU_TEMP, gauge, x").fields] == [
        "DCGM_FI_DEV_GPU_TEMP"
    ]
    assert refusal(fields="nonsense")[0] == "unknown field or group of fields 'nonsense'"
    assert refusal(fields="labels") == (
        "only labels are named, so there would be no series",
        "Name a field beside them.",
    )


numbers = st.floats(0, 100) | st.integers(0, 100).map(float)
given_options = st.fixed_dictionaries(
    {
        "fields": st.sampled_from(["default", "all", "default,ecc", "DCGM_FI_DEV_GPU_UTIL"]),
        "compat": st.lists(st.sampled_from(list(COMPATIBILITY)), unique=True),
        "jitter": numbers,
        "seed": st.integers(0, 10**9),
        "time_scale": st.floats(1e-6, 1e6) | st.sampled_from([1.0, 60.0]),
        "shard": st.sampled_from(["", "2/4"]),
        "read_only": st.booleans(),
    }
)


@settings(deadline=None)
@given(given_options)
def test_the_agents_command_line_says_the_same(options):
    wanted = agent_options(**options)
    found = _parser().parse_args(wanted.arguments())
    again = agent_options(**{name: getattr(found, name) for name in options})
    # Without jitter nothing is drawn, whatever the seed.
    assert again == (wanted if wanted.jitter else replace(wanted, seed=0))


def test_what_is_as_by_default_is_not_said():
    assert agent_options().arguments() == []
    assert agent_options(jitter=20, seed=3, time_scale=60, compat=["pod-uid,hostname"]).arguments() == [
        *("--compat", "hostname,pod-uid"),
        *("--jitter", "20", "--seed", "3"),
        *("--time-scale", "60"),
    ]
