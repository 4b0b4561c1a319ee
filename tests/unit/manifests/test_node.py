"""The Node: NVIDIA's labels to the key, capacity by how GPUs are offered, the same bytes every time."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.declaration_reading import decode
from kubectl_ghost.domain.hardware import Advertise, NodeHardware, Taint
from kubectl_ghost.domain.naming import check_label
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.manifests.gfd_labels import gfd_labels
from kubectl_ghost.manifests.node import node

ORACLE = Path(__file__).parents[2] / "data" / "oracle" / "gfd-h100-none.txt"
ADDED = {"nvidia.com/gfd.timestamp", "nvidia.com/gpu.machine", "nvidia.com/vgpu.present", "nvidia.com/gpu.present"}
DRIVER = ("nvidia.com/cuda.",)


def settings(**changes):
    return replace(configure("node", None, PoolRequest()), **changes)


def test_gfd_keys_are_those_that_nvidias_code_printed():
    printed = dict(line.split("=", 1) for line in ORACLE.read_text().split())
    ours = gfd_labels("h100-sxm5-80gb", 8)
    assert set(ours) == set(printed) | ADDED
    differing = {key for key, value in printed.items() if ours[key] != value}
    # The recording has another driver version; all else is equal.
    assert all(key.startswith(DRIVER) for key in differing)


@pytest.mark.parametrize("key", model_keys())
def test_every_models_labels_are_labels(key):
    made = node(NodeHardware(settings(model=key), 0))
    for label, value in made["metadata"]["labels"].items():
        check_label(label, value)


@pytest.mark.parametrize(("key", "arch"), [("gb200", "arm64"), ("gh200-96gb", "arm64"), ("h100-nvl", "amd64")])
def test_architecture_of_the_host(key, arch):
    assert node(NodeHardware(settings(model=key), 0))["metadata"]["labels"]["kubernetes.io/arch"] == arch


def test_only_boards_on_a_fabric_have_a_clique_and_a_rack_shares_it():
    racks = settings(model="gb200", racks=("r1", "r2"))
    cliques = [node(NodeHardware(racks, index))["metadata"]["labels"]["nvidia.com/gpu.clique"] for index in range(4)]
    assert cliques[0] == cliques[2] != cliques[1] == cliques[3]
    assert cliques[0].endswith(".2")
    assert "nvidia.com/gpu.clique" not in node(NodeHardware(settings(), 0))["metadata"]["labels"]


def test_racks_of_one_name_in_two_pools_are_two_fabrics():
    def clique(pool, *racks):
        made = node(NodeHardware(settings(name=pool, model="gb200", racks=racks), 0))
        return made["metadata"]["labels"]["nvidia.com/gpu.clique"]

    assert len({clique("a", "r1"), clique("b", "r1"), clique("a", "r2"), clique("a"), clique("b")}) == 5


@pytest.mark.parametrize(
    ("advertise", "gpus"), [(Advertise.BOTH, "8"), (Advertise.DEVICE_PLUGIN, "8"), (Advertise.DRA, None)]
)
def test_capacity_by_how_gpus_are_offered(advertise, gpus):
    made = node(NodeHardware(settings(advertise=advertise), 0))
    assert made["status"]["capacity"].get("nvidia.com/gpu") == gpus
    assert made["status"]["allocatable"] == made["status"]["capacity"]


def test_ready_is_left_to_kwok():
    assert "conditions" not in node(NodeHardware(settings(), 0))["status"]


def test_kwoks_mark_provider_and_declaration():
    hardware = NodeHardware(settings(), 3)
    made = node(hardware)
    assert made["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
    assert decode(made["metadata"]["annotations"]["kubectl-ghost.dev/hardware"], "node-3") == hardware
    assert made["spec"]["providerID"] == "kwok://node-3"


def test_zones_are_dealt_out_in_turn():
    zones = [
        node(NodeHardware(settings(zones=("a", "b")), index))["metadata"]["labels"]["topology.kubernetes.io/zone"]
        for index in range(3)
    ]
    assert zones == ["a", "b", "a"]


def test_a_rack_stands_in_one_zone():
    spread = settings(zones=("a", "b"), racks=("r1", "r2", "r3"))
    labels = [node(NodeHardware(spread, index))["metadata"]["labels"] for index in range(9)]
    places = {(label["kubectl-ghost.dev/rack"], label["topology.kubernetes.io/zone"]) for label in labels}
    assert places == {("r1", "a"), ("r2", "b"), ("r3", "a")}


def test_taints():
    own = (Taint("k", "NoExecute", "v"), Taint("bare", "NoSchedule"))
    assert node(NodeHardware(settings(tainted=True, taints=own), 0))["spec"]["taints"] == [
        {"key": "kwok.x-k8s.io/node", "effect": "NoSchedule", "value": "fake"},
        {"key": "k", "effect": "NoExecute", "value": "v"},
        {"key": "bare", "effect": "NoSchedule"},
    ]
    assert "taints" not in node(NodeHardware(settings(), 0))["spec"]


def test_a_users_label_wins_over_the_models():
    made = node(NodeHardware(settings(labels=(("nvidia.com/gpu.product", "mine"),)), 0))["metadata"]["labels"]
    assert made["nvidia.com/gpu.product"] == "mine"


def test_same_input_same_bytes():
    assert json.dumps(node(NodeHardware(settings(), 0))) == json.dumps(node(NodeHardware(settings(), 0)))
