"""The command lines of occupy and release: what is refused, what is said, and where it is said."""

import pytest

from kubectl_ghost import cli
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.commands import session
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import GpuState
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.reconcile import update_node
from tests.unit.operations import fleet, memory

NO_CLUSTER = ["--kubeconfig", "/dev/null", "--server", "https://127.0.0.1:1"]


def run(capfd, *arguments):
    code = cli.run(list(arguments))
    out, err = capfd.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--all", "--free", "1", "--utilization", "50%"], "--free and --utilization exclude each other"),
        (["--all", "--free", "1", "--random", "2"], "--free and --random exclude each other"),
        (["--all", "--free", "1", "--profiles", "1g.10gb"], "--profiles and --free exclude each other"),
        (["node-0", "--profiles", "1g.10gb", "--with", "pods"], "--profiles and --with pods exclude each other"),
        (["node-0", "--profiles", " "], "--profiles names no profile"),
        (["node-0", "--priority", "3"], "--priority goes with --with pods"),
        (["node-0", "--seed", "3"], "--seed goes with --random or --utilization"),
        (["node-0", "--with", "pods", "--priority", "1000000001"], "1000000001 is not in the range"),
        (["node-0", "--with", "magic"], "'magic' is not one of"),
        (["--all", "--free", "2,x"], 'invalid --free "2,x"'),
        (["--all", "--free", "-1"], 'invalid --free "-1"'),
        (["--all", "--utilization", "101%"], 'invalid --utilization "101%"'),
        (["--all", "--utilization", "half"], 'invalid --utilization "half"'),
        (["node-0", "--no-such-flag"], "no-such-flag"),
    ],
)
def test_flags_that_make_no_sense_are_not_dropped(arguments, words, capfd):
    code, out, err = run(capfd, "occupy", *arguments, *NO_CLUSTER)
    assert (code, out) == (ExitCode.USAGE, "")
    assert words in err


@pytest.mark.parametrize("command", ["occupy", "release"])
def test_something_has_to_be_named(command, capfd):
    code, out, err = run(capfd, command, *NO_CLUSTER)
    assert (code, out) == (ExitCode.ERROR, "")
    assert "name what is meant" in err


@pytest.mark.parametrize("command", ["occupy", "release"])
def test_an_output_that_there_is_none_of_is_told_before_the_cluster_is_asked(command, capfd):
    code, _, err = run(capfd, command, "node-0", "-o", "wide", *NO_CLUSTER)
    assert code == ExitCode.ERROR
    assert "unable to match a printer" in err


@pytest.fixture
def store(monkeypatch):
    """A fleet of four nodes with four GPUs each behind every command."""
    store = fleet.cluster(4, gpus=4)

    class Memory(memory.Memory):
        """No fillers are made here, so there is no namespace of theirs."""

        def _ask(self, request):
            if request.path.startswith("/api/v1/namespaces/kubectl-ghost-occupancy"):
                raise memory.NotFound("not found", status=404)
            return super()._ask(request)

    monkeypatch.setattr(session, "writer", lambda _, dry_run, output=None: Memory(store, dry_run=dry_run))
    return store


def busy(store):
    return [sum(1 for _, gpu in hardware_of(node).gpus if gpu.occupancy) for node in store.all(NODES)]


def test_the_fragmented_fleet_says_what_it_comes_to_and_release_what_it_undid(store, capfd):
    code, out, err = run(capfd, "occupy", "--pool", "node", "--free", "2,2,2,1")
    assert (code, err) == (0, "9 GPUs on 4 nodes are busy now (7 free)\n")
    assert out.splitlines()[0] == "node/node-0 configured"
    assert busy(store) == [2, 2, 2, 3]
    code, out, err = run(capfd, "release", "node-3/gpu-0")
    assert (code, err) == (0, "1 GPU on 1 node is released\n")
    code, out, err = run(capfd, "release", "--all")
    assert (code, err) == (0, "8 GPUs on 4 nodes are released\n")
    assert run(capfd, "release", "--all") == (0, "", "No resources found\n")


def test_a_single_gpu(store, capfd):
    _, out, err = run(capfd, "occupy", "node-1/gpu-2", "-o", "name")
    assert out.splitlines()[0] == "node/node-1"
    assert err == "1 GPU on 1 node is busy now (3 free)\n"
    assert busy(store) == [0, 1, 0, 0]


def test_a_draw_without_a_name_is_of_the_whole_fleet(store, capfd):
    _, _, err = run(capfd, "occupy", "--random", "5", "--seed", "3")
    assert err.endswith("are busy now (11 free)\n")
    assert sum(busy(store)) == 5


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (["node-1"], {"node-1": 4}),
        (["-l", "kubernetes.io/hostname=node-1"], {"node-1": 4}),
        (["--pool", "small"], {"small-0": 2, "small-1": 2}),
    ],
)
def test_a_draw_with_a_name_is_of_what_is_named(named, expected, store, capfd):
    fleet.add_pool(memory.Memory(store), "small", 2, gpus=2)
    assert run(capfd, "occupy", *named, "--random", "4")[0] == 0
    counts = {node["metadata"]["name"]: len(hardware_of(node).gpus) for node in store.all(NODES)}
    assert {name: number for name, number in counts.items() if number} == expected


def test_a_share_of_the_fleet(store, capfd):
    assert run(capfd, "occupy", "--all", "--utilization", "70%", "--seed", "7")[0] == 0
    assert sum(busy(store)) == 11


def test_a_dry_run_says_so(store, capfd):
    _, out, err = run(capfd, "occupy", "node-0", "--dry-run=client")
    assert "node/node-0 configured (dry run)" in out
    assert err == "4 GPUs on 1 node would be busy (0 free)\n"
    assert busy(store) == [0, 0, 0, 0]
    run(capfd, "occupy", "node-0")
    assert run(capfd, "release", "node-0", "--dry-run=client")[2] == "4 GPUs on 1 node would be released\n"
    assert busy(store) == [4, 0, 0, 0]


def test_too_few_numbers_name_both_counts(store, capfd):
    code, out, err = run(capfd, "occupy", "--pool", "node", "--free", "2,2,2")
    assert (code, out) == (ExitCode.ERROR, "")
    assert "--free has 3 number(s) for 4 node(s)" in err


OVER = Fault("xid", 79, until="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "words",
    [["occupy", "node-0"], ["release", "--all"], ["mig-split", "node-0", "--off"]],
    ids=["occupy", "release", "mig-split"],
)
def test_what_is_over_is_ended_before_nodes_are_read_so_that_nothing_is_written_to_what_was(words, monkeypatch, capfd):
    store, refused = fleet.cluster(2, gpus=2), []

    class Memory(memory.Memory):
        """Remembers what was refused."""

        def _update(self, *given):
            try:
                return super()._update(*given)
            except memory.Conflict as error:
                refused.append(error)
                raise

    monkeypatch.setattr(session, "writer", lambda _, dry_run, output=None: Memory(store, dry_run=dry_run))
    update_node(Memory(store), store.one(NODES, "node-0"), lambda old: old.with_gpu(1, GpuState(faults=(OVER,))))
    code, out, _ = run(capfd, *words)
    assert code == 0
    assert out.startswith("node/node-0 configured\n")
    assert hardware_of(store.one(NODES, "node-0")).all_faults() == []
    assert refused == []
