"""Declared hardware survives its annotation, whatever is in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.declaration_reading import decode
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import (
    Advertise,
    GpuState,
    MigConfig,
    MigMode,
    NodeHardware,
    Occupancy,
    OccupancyKind,
    PoolSettings,
    Reboot,
    Taint,
    TaintMode,
)
from kubectl_ghost.domain.mig import MigInstance

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


def with_gpu(state, model="h100-sxm5-80gb", index="0"):
    return json.dumps({**GOOD, "pool": {**GOOD["pool"], "model": model}, "gpus": {index: state}})


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
        damaged(gpus=0),
        damaged(gpus=129),
        damaged(sharing=["mps", 1, False]),
        with_gpu({"mig": [["9g.90gb", 0]]}),
        with_gpu({"mig": [["1g.10gb", 0]]}, "t4"),
        with_gpu({"mig": [["3g.40gb", 1]]}),
        with_gpu({"mig": [["3g.40gb", 0], ["4g.40gb", 0]]}),
        with_gpu({"occupied": {"by": "taint", "instances": [["3g.40gb", 1]]}}),
        with_gpu({"occupied": {"by": "nobody"}}),
        with_gpu({"occupied": {"by": "pods", "priority": "high"}}),
        with_gpu({"faults": [{"kind": "node-down"}]}),
        with_gpu({"faults": [{"kind": "xid", "code": 1}]}),
        with_gpu({}, index="9"),
        json.dumps({**GOOD, "faults": [{"kind": "xid", "code": 79}]}),
        json.dumps({**GOOD, "reboot": ["a", "b"]}),
    ],
)
def test_a_damaged_annotation_names_the_node(text):
    decode(json.dumps(GOOD), "node-7")
    decode(with_gpu({"mig": [["3g.40gb", 0], ["3g.40gb", 4]]}), "node-7")
    with pytest.raises(GhostError, match="node-7"):
        decode(text, "node-7")


def test_a_newer_format_says_so():
    declared = NodeHardware(PoolSettings("node", "t4", 4, Advertise.BOTH, "1", "1Gi", 1), 0)
    newer = {**json.loads(encode(declared)), "format": 2}
    with pytest.raises(GhostError, match="format 2, this version knows 1"):
        decode(json.dumps(newer), "node-0")


STATES = NodeHardware(
    PoolSettings("node", "h100-sxm5-80gb", 4, Advertise.BOTH, "1", "1Gi", 1, mig=MigMode.DYNAMIC),
    0,
    4,
    gpus=(
        (0, GpuState(mig=(MigInstance("3g.40gb", 0), MigInstance("1g.10gb", 4)))),
        (1, GpuState(mig=(), faults=(Fault("xid", 79, since="2026-01-01T00:00:00Z"),))),
        (2, GpuState(occupancy=Occupancy(OccupancyKind.PODS, priority=-5))),
        (3, GpuState(occupancy=Occupancy(instances=(MigInstance("4g.40gb", 0),)))),
    ),
    faults=(Fault("driver-crash", until="2026-01-01T00:00:00Z"),),
    mig_config=MigConfig("custom", "success"),
    reboot=Reboot("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
    rebooted_for="a=b",
    cordoned=True,
    conditions=("AcceleratedHardwareReady",),
)


def test_everything_that_can_be_done_to_a_node_survives():
    assert decode(encode(STATES), "node-0") == STATES
