"""Declared hardware survives its annotation, whatever is in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.declaration import decode, encode
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import Advertise, NodeHardware, PoolSettings, Taint, TaintMode

words = st.text("abcxyz-.0123456789", min_size=1, max_size=8)
settings = st.builds(
    PoolSettings,
    name=words,
    model=st.sampled_from(model_keys()),
    gpus=st.integers(1, 128),
    advertise=st.sampled_from(Advertise),
    cpu=words,
    memory=words,
    pods=st.integers(1, 500),
    taint=st.sampled_from(TaintMode),
    tainted=st.booleans(),
    labels=st.dictionaries(words, words, max_size=3).map(lambda labels: tuple(sorted(labels.items()))),
    taints=st.lists(st.builds(Taint, words, st.just("NoSchedule"), words), max_size=2).map(tuple),
    zones=st.lists(words, max_size=3).map(tuple),
    racks=st.lists(words, max_size=3).map(tuple),
)
hardware = st.builds(
    NodeHardware, settings=settings, index=st.integers(0, 10**5), pool_size=st.none() | st.integers(1, 10**5)
)


@given(hardware)
def test_what_is_encoded_is_decoded(declared):
    assert decode(encode(declared), declared.node_name) == declared


@given(hardware)
def test_the_same_declaration_has_the_same_bytes(declared):
    assert encode(declared) == encode(decode(encode(declared), declared.node_name))


def test_the_annotation_is_compact():
    declared = NodeHardware(PoolSettings("node", "t4", 4, Advertise.BOTH, "144", "960Gi", 110), 3)
    assert encode(declared) == (
        '{"format":1,"index":3,"pool":{"advertise":"both","cpu":"144","gpus":4,"memory":"960Gi","model":"t4",'
        '"name":"node","pods":110,"taint":"auto","tainted":false}}'
    )


GOOD = {
    "format": 1,
    "index": 7,
    "pool": json.loads(encode(NodeHardware(PoolSettings("node", "t4", 4, Advertise.BOTH, "1", "1Gi", 1), 7)))["pool"],
}


def damaged(**pool):
    return json.dumps({**GOOD, "pool": {**GOOD["pool"], **pool}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"format":1}',
        '{"format":1,"index":"a","pool":{}}',
        json.dumps({**GOOD, "index": -7}),
        "[" * 100_000,
        json.dumps({**GOOD, "nodes": "many"}),
        json.dumps(GOOD).replace('"gpus": 4', '"gpus": 1e999'),
        damaged(cpu=192),
        damaged(gpus=True),
        damaged(labels={"a": {}}),
        damaged(labels=["a"]),
        damaged(model=["t4"]),
        damaged(model="h300"),
        damaged(taints=[["a", "b", ["c"]]]),
        damaged(taints=[["a"]]),
        damaged(zones=[1]),
        damaged(name="other"),
        damaged(advertise="cdi"),
    ],
)
def test_a_damaged_annotation_names_the_node(text):
    decode(json.dumps(GOOD), "node-7")
    with pytest.raises(GhostError, match="node-7"):
        decode(text, "node-7")


def test_a_newer_format_says_so():
    declared = NodeHardware(PoolSettings("node", "t4", 4, Advertise.BOTH, "1", "1Gi", 1), 0)
    newer = {**json.loads(encode(declared)), "format": 2}
    with pytest.raises(GhostError, match="format 2, this version knows 1"):
        decode(json.dumps(newer), "node-0")
