"""The command lines of mig-split, and of add-pool where it speaks of MIG and sharing."""

import json

import pytest

from kubectl_ghost import cli
from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.commands import session
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.operations.fleet import hardware_of
from tests.unit.operations import fleet
from tests.unit.operations.memory import Memory

NO_CLUSTER = ["--kubeconfig", "/dev/null", "--server", "https://127.0.0.1:1"]


def run(capfd, *arguments):
    code = cli.run(list(arguments))
    out, err = capfd.readouterr()
    return code, out, err


@pytest.fixture
def store(monkeypatch):
    """A fleet behind every command."""
    store = fleet.cluster(2, gpus=2)
    monkeypatch.setattr(session, "writer", lambda _, dry_run, output=None: Memory(store, dry_run=dry_run))
    monkeypatch.setattr("kubectl_ghost.operations.evicting._LOOK_SECONDS", 0)
    return store


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["node-0"], "give one of --profiles, --config and --off"),
        (["node-0", "--off", "--config", "all-balanced"], "give one of --profiles, --config and --off"),
        (["node-0", "--profiles", "1g.10gb", "--config", "all-balanced"], "give one of"),
        (["node-0", "--profiles", " "], "--profiles is empty; for whole GPUs, use --off"),
        (["node-0", "--off", "--random", "2"], "No such option"),
    ],
)
def test_what_is_not_understood_is_a_usage_error(arguments, words, capfd):
    code, out, err = run(capfd, "mig-split", *arguments, *NO_CLUSTER)
    assert (code, out) == (ExitCode.USAGE, "")
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--off"], "name what is meant"),
        (["node-0", "--all", "--off"], "not several of them"),
        (["node-0/gpu-x", "--off"], 'invalid GPU "gpu-x"'),
        (["node-0", "--off", "-o", "wide"], "unable to match a printer"),
    ],
)
def test_bad_input_is_told_before_the_cluster_is_asked(arguments, words, capfd):
    code, out, err = run(capfd, "mig-split", *arguments, *NO_CLUSTER)
    assert (code, out) == (ExitCode.ERROR, "")
    assert words in err


def test_it_says_on_how_much_it_lands_and_what_it_did(store, capfd):
    code, out, err = run(capfd, "mig-split", "--pool", "node", "--config", "all-balanced")
    assert (code, err) == (0, "all-balanced on 4 GPUs of 2 nodes\n")
    assert [line.partition(" ")[2] for line in out.splitlines()] == ["configured"] * 4
    code, out, _ = run(capfd, "mig-split", "--pool", "node", "--config", "all-balanced")
    assert [line.partition(" ")[2] for line in out.splitlines()] == ["unchanged"] * 4


@pytest.mark.parametrize(
    "targets", [["node-1/gpu-1"], ["node-1", "gpu-1"], ["-l", "kubernetes.io/hostname=node-1"], ["--all"]]
)
def test_targets_by_name_label_or_all(targets, store, capfd):
    code, _, err = run(capfd, "mig-split", *targets, "--profiles", "3g.40gb,2g.20gb,1g.10gb*2")
    assert code == 0
    assert err.startswith("3g.40gb,2g.20gb,1g.10gb*2 on ")
    assert len(hardware_of(store.one(NODES, "node-1")).gpu(1).mig) == 4


def test_a_holder_is_named_and_evicted_only_by_force(store, capfd):
    fleet.holding(store, "train", "node-0", "gpu-0")
    code, out, err = run(capfd, "mig-split", "node-0/gpu-0", "--profiles", "7g.80gb")
    assert (code, out) == (ExitCode.ERROR, "")
    assert 'error: node "node-0": 1 pod(s) hold GPUs that would be gone: default/train\n' in err
    code, out, err = run(capfd, "mig-split", "node-0/gpu-0", "--profiles", "7g.80gb", "--force")
    assert (code, err) == (0, "7g.80gb on 1 GPU of 1 node\n")
    assert out.startswith('pod "train" deleted from default namespace\nnode/node-0 configured\n')
    assert store.names(PODS) == []


def test_dry_runs_and_formats(store, capfd):
    code, out, _ = run(capfd, "mig-split", "node-0", "--config", "all-1g.10gb", "--dry-run=client")
    assert code == 0
    assert out.splitlines()[0] == "node/node-0 configured (dry run)"
    assert hardware_of(store.one(NODES, "node-0")).gpus == ()
    _, out, _ = run(capfd, "mig-split", "node-0", "--config", "all-1g.10gb", "-o", "name")
    assert out.splitlines()[0] == "node/node-0"
    _, out, _ = run(capfd, "mig-split", "node-0", "--config", "all-1g.10gb", "-o", "json")
    node, slice_ = json.loads(out)["items"]
    assert node["status"]["capacity"]["nvidia.com/mig-1g.10gb"] == "14"
    assert len(slice_["spec"]["devices"]) == 14


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rename-by-default"], "--rename-by-default goes with --sharing"),
        (["--mig", "auto"], "'auto' is not one of"),
        (["--mig-strategy", "both"], "'both' is not one of"),
    ],
)
def test_add_pool_refuses_flags_that_make_no_sense(arguments, words, capfd):
    code, out, err = run(capfd, "add-pool", *arguments, *NO_CLUSTER)
    assert (code, out) == (ExitCode.USAGE, "")
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sharing", "4"], 'invalid --sharing "4"'),
        (["--sharing", "none", "--rename-by-default"], "there are no shares to rename"),
        (["--gpu", "l4", "--mig", "dynamic"], "l4 has none"),
        (["--advertise", "dra", "--sharing", "time-slicing=4"], "--advertise dra counts none"),
    ],
)
def test_add_pool_tells_bad_input_before_the_cluster_is_asked(arguments, words, capfd):
    code, out, err = run(capfd, "add-pool", *arguments, *NO_CLUSTER)
    assert (code, out) == (ExitCode.ERROR, "")
    assert words in err


def test_add_pool_takes_mig_and_sharing(store, capfd):
    flags = ["--gpus-per-node", "1", "--count", "1", "--wait=false"]
    assert run(capfd, "add-pool", "flexible", "--mig", "dynamic", *flags)[0] == 0
    shared = ["--sharing", "time-slicing=4", "--rename-by-default", "--mig-strategy", "single"]
    assert run(capfd, "add-pool", "shared", *shared, *flags)[0] == 0
    assert len(fleet.slices_on(store, "flexible-0")) == 2
    assert store.one(NODES, "shared-0")["status"]["capacity"]["nvidia.com/gpu.shared"] == "4"
    assert store.one(NODES, "shared-0")["metadata"]["labels"]["nvidia.com/mig.strategy"] == "single"
