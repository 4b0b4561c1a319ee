"""Labels and capacity of split and shared GPUs, against what NVIDIA's feature discovery printed for eight H100.

The recordings were made on a mock whose figures of 1g.10gb are not a board's: 9728 MiB and no decoder. Ours are those
of `nvidia-smi mig -lgip`: 9984 MiB and one decoder. Everything else is equal.
"""

import pytest

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.devices import table_of
from kubectl_ghost.domain.hardware import MigMode, MigStrategy, NodeHardware, Sharing, SharingKind
from kubectl_ghost.domain.mig import mig_table
from kubectl_ghost.domain.mig_layouts import config_names
from kubectl_ghost.domain.naming import check_label
from kubectl_ghost.domain.pools import PoolRequest, configure
from kubectl_ghost.domain.splitting import SplitRequest, configure_mig, split_as_asked
from kubectl_ghost.manifests.gfd_labels import gfd_labels
from kubectl_ghost.manifests.node import node

MIG_MODELS = [key for key in model_keys() if mig_table(key) is not None]
INSTANCE = {
    "engines.copy": "1",
    "engines.decoder": "1",
    "engines.encoder": "0",
    "engines.jpeg": "1",
    "engines.ofa": "0",
    "memory": "9984",
    "multiprocessors": "16",
    "product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
    "replicas": "1",
    "sharing-strategy": "none",
    "slices.ci": "1",
    "slices.gi": "1",
}
MIXED = {
    "nvidia.com/gpu.replicas": "0",
    "nvidia.com/mig-1g.10gb.count": "56",
    **{f"nvidia.com/mig-1g.10gb.{key}": value for key, value in INSTANCE.items()},
    "nvidia.com/mig.strategy": "mixed",
}
SINGLE = {
    "nvidia.com/gpu.count": "56",
    **{f"nvidia.com/gpu.{key}": value for key, value in INSTANCE.items()},
    "nvidia.com/mig.strategy": "single",
}
INVALID = {
    "nvidia.com/gpu.count": "0",
    "nvidia.com/gpu.memory": "0",
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-INVALID",
    "nvidia.com/gpu.replicas": "0",
    "nvidia.com/gpu.sharing-strategy": "",
    "nvidia.com/mig.strategy": "single",
}
SUCCESS = {"nvidia.com/mig.config.state": "success"}


def whole(strategy="mixed", model="h100", gpus=8, **request):
    settings = configure(
        "node", None, PoolRequest(model=model, gpus=gpus, mig_strategy=MigStrategy(strategy), **request)
    )
    return NodeHardware(settings, 0)


def split(config, strategy="mixed", **request):
    return configure_mig(whole(strategy, **request), config)


def changed(hardware):
    """The labels that differ from those of whole GPUs."""
    plain = gfd_labels(hardware.settings.model, hardware.settings.gpus)
    made = node(hardware)["metadata"]["labels"]
    return {key: value for key, value in made.items() if key.startswith("nvidia.com/") and plain.get(key) != value}


def gpu_resources(hardware):
    capacity = node(hardware)["status"]["capacity"]
    return {key: int(value) for key, value in capacity.items() if key.startswith("nvidia.com/")}


@pytest.mark.parametrize(
    ("strategy", "labels", "capacity"),
    [
        ("mixed", MIXED, {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 56}),
        ("single", SINGLE, {"nvidia.com/gpu": 56}),
        ("none", {"nvidia.com/gpu.replicas": "0"}, {"nvidia.com/gpu": 8}),
    ],
)
def test_eight_h100_in_seven_parts_each(strategy, labels, capacity):
    hardware = split("all-1g.10gb", strategy)
    wanted = {**labels, "nvidia.com/mig.config": "all-1g.10gb", **SUCCESS}
    assert wanted.items() <= node(hardware)["metadata"]["labels"].items()
    assert changed(hardware).items() <= wanted.items()
    assert gpu_resources(hardware) == capacity


def test_the_balanced_layout_counts_each_profile_by_its_own_name():
    hardware = split("all-balanced")
    labels = changed(hardware)
    counts = {key: value for key, value in labels.items() if key.endswith((".count", ".memory", ".multiprocessors"))}
    assert counts == {
        "nvidia.com/mig-1g.10gb.count": "16",
        "nvidia.com/mig-1g.10gb.memory": "9984",
        "nvidia.com/mig-1g.10gb.multiprocessors": "16",
        "nvidia.com/mig-2g.20gb.count": "8",
        "nvidia.com/mig-2g.20gb.memory": "20096",
        "nvidia.com/mig-2g.20gb.multiprocessors": "32",
        "nvidia.com/mig-3g.40gb.count": "8",
        "nvidia.com/mig-3g.40gb.memory": "40448",
        "nvidia.com/mig-3g.40gb.multiprocessors": "60",
    }
    assert gpu_resources(hardware) == {
        "nvidia.com/gpu": 0,
        "nvidia.com/mig-1g.10gb": 16,
        "nvidia.com/mig-2g.20gb": 8,
        "nvidia.com/mig-3g.40gb": 8,
    }


def test_one_split_gpu_among_whole_ones():
    hardware = split_as_asked(whole(), (0,), SplitRequest(profiles="1g.10gb.me,3g.40gb"))
    labels = changed(hardware)
    assert labels["nvidia.com/mig-1g.10gb.me.count"] == labels["nvidia.com/mig-3g.40gb.count"] == "1"
    assert "nvidia.com/gpu.replicas" not in labels
    assert gpu_resources(hardware) == {"nvidia.com/gpu": 7, "nvidia.com/mig-1g.10gb.me": 1, "nvidia.com/mig-3g.40gb": 1}


@pytest.mark.parametrize(
    "hardware",
    [
        split("all-balanced", "single"),
        split("all-enabled", "single"),
        split_as_asked(whole("single"), (0,), SplitRequest(profiles="1g.10gb*7")),
        split("all-balanced", "single", sharing=Sharing(SharingKind.TIME_SLICING, 4)),
    ],
    ids=["several profiles", "no instance", "whole ones beside it", "shared"],
)
def test_a_layout_that_the_single_strategy_calls_invalid(hardware):
    labels = changed(hardware)
    assert {key: value for key, value in labels.items() if not key.startswith("nvidia.com/mig.config")} == INVALID
    assert gpu_resources(hardware) == {"nvidia.com/gpu": 0}


def test_nothing_split_looks_like_whole_gpus():
    assert changed(whole("mixed")) == changed(whole("none")) == {}
    assert changed(whole("single")) == {"nvidia.com/mig.strategy": "single"}
    off = split_as_asked(split("all-1g.10gb"), range(8), SplitRequest())
    assert changed(off) == {"nvidia.com/mig.config": "all-disabled", **SUCCESS}
    assert gpu_resources(off) == {"nvidia.com/gpu": 8}


def test_dynamic_mig_says_nothing_in_labels():
    assert changed(whole(mig=MigMode.DYNAMIC)) == {}


@pytest.mark.parametrize(
    ("sharing", "labels", "capacity"),
    [
        (
            Sharing(SharingKind.TIME_SLICING, 4),
            {"replicas": "4", "sharing-strategy": "time-slicing", "product": "NVIDIA-H100-80GB-HBM3-SHARED"},
            {"nvidia.com/gpu": 32},
        ),
        (
            Sharing(SharingKind.TIME_SLICING, 4, renamed=True),
            {"replicas": "4", "sharing-strategy": "time-slicing"},
            {"nvidia.com/gpu.shared": 32},
        ),
        (
            Sharing(SharingKind.MPS, 10),
            {"replicas": "10", "sharing-strategy": "mps", "product": "NVIDIA-H100-80GB-HBM3-SHARED"},
            {"nvidia.com/gpu": 80},
        ),
    ],
)
def test_shared_gpus(sharing, labels, capacity):
    hardware = whole(sharing=sharing)
    mps = {"nvidia.com/mps.capable": "true"} if sharing.kind is SharingKind.MPS else {}
    assert changed(hardware) == {**{f"nvidia.com/gpu.{key}": value for key, value in labels.items()}, **mps}
    assert gpu_resources(hardware) == capacity


def test_shared_instances_of_the_single_strategy():
    hardware = split("all-1g.10gb", "single", sharing=Sharing(SharingKind.TIME_SLICING, 2))
    labels = changed(hardware)
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED"
    assert labels["nvidia.com/gpu.replicas"] == "2"
    assert labels["nvidia.com/gpu.count"] == "56"
    assert gpu_resources(hardware) == {"nvidia.com/gpu": 112}


@pytest.mark.parametrize("strategy", ["mixed", "none"])
def test_where_every_gpu_is_split_none_is_shared(strategy):
    labels = changed(split("all-1g.10gb", strategy, sharing=Sharing(SharingKind.TIME_SLICING, 4)))
    assert labels["nvidia.com/gpu.replicas"] == "0"
    assert {"nvidia.com/gpu.product", "nvidia.com/gpu.sharing-strategy"}.isdisjoint(labels)


@pytest.mark.parametrize("model", MIG_MODELS)
@pytest.mark.parametrize("strategy", list(MigStrategy))
def test_every_label_of_every_layout_is_a_label(model, strategy):
    sharing = Sharing(SharingKind.TIME_SLICING, 4)
    for name in config_names(table_of(model)):
        for request in ({}, {"sharing": sharing}):
            made = node(split(name, strategy, model=model, gpus=2, **request))
            for key, value in made["metadata"]["labels"].items():
                check_label(key, value)
            for resource in made["status"]["capacity"]:
                check_label(resource, "")
