"""Labels and taints as kubectl spells them."""

import pytest

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.hardware import Taint
from kubectl_ghost.domain.naming import parse_labels, parse_taints, parse_words


def test_labels_may_be_repeated_or_joined():
    assert parse_labels(("b=2,a=1", "example.com/c=")) == (("a", "1"), ("b", "2"), ("example.com/c", ""))


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "=b",
        "a=b c",
        "A/b/c=d",
        "a=" + "x" * 64,
        "-a=b",
        "a..b/c=d",
        "kubectl-ghost.dev/pool=x",
        "app.kubernetes.io/managed-by=x",
        "kubernetes.io/hostname=x",
        "beta.kubernetes.io/arch=x",
    ],
)
def test_bad_labels(text):
    with pytest.raises(InputError):
        parse_labels((text,))


def test_taints():
    assert parse_taints(("k=v:NoSchedule,e:NoExecute",)) == (Taint("e", "NoExecute"), Taint("k", "NoSchedule", "v"))


@pytest.mark.parametrize(
    "text",
    [
        "k",
        "k=v",
        "k=v:Never",
        ":NoSchedule",
        "k=1:NoSchedule,k=2:NoSchedule",
        "kwok.x-k8s.io/node=fake:NoSchedule",
        "node.kubernetes.io/not-ready:NoSchedule",
    ],
)
def test_bad_taints(text):
    with pytest.raises(InputError):
        parse_taints((text,))


def test_words():
    assert parse_words(("a, b", "c,,")) == ("a", "b", "c")


@pytest.mark.parametrize("key", ["nvidia.com/mig.config", "nvidia.com/mig.config.state"])
def test_the_mig_managers_labels_are_not_a_pools(key):
    with pytest.raises(InputError, match="MIG manager"):
        parse_labels((f"{key}=all-balanced",))
