"""The taints that a node can carry: one of a key and effect, and kwok's own by its own flag alone."""

import pytest

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.hardware import NodeHardware, Taint
from kubectl_ghost.domain.naming import parse_taints, refuse_doubled
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.manifests.node import node


def test_one_key_may_have_several_effects():
    taints = parse_taints(("k=v:NoSchedule,k=v:NoExecute",))
    made = node(NodeHardware(configure("node", None, PoolRequest(taints=taints)), 0))
    assert [taint["effect"] for taint in made["spec"]["taints"]] == ["NoExecute", "NoSchedule"]


def test_two_values_of_one_key_and_effect_are_refused():
    with pytest.raises(InputError, match='taint "k:NoSchedule" stands twice'):
        refuse_doubled([Taint("a", "NoSchedule"), Taint("k", "NoSchedule", "1"), Taint("k", "NoSchedule", "2")])


def test_the_very_same_taint_twice_is_refused_in_a_list_and_one_when_parsed():
    with pytest.raises(InputError, match="stands twice"):
        refuse_doubled([Taint("k", "NoSchedule"), Taint("k", "NoSchedule")])
    assert parse_taints(("k:NoSchedule", "k:NoSchedule")) == (Taint("k", "NoSchedule"),)


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute", "PreferNoSchedule"])
def test_kwoks_own_is_refused_with_the_flag_that_sets_it(effect):
    with pytest.raises(InputError, match="kwok's own") as refusal:
        refuse_doubled([Taint("k", "NoSchedule"), Taint("kwok.x-k8s.io/node", effect, "other")])
    assert "--taint always" in refusal.value.hint


def test_none_at_all_are_fine():
    assert refuse_doubled([]) is None
