"""The command lines of `fault`: what is refused, what is said, what is printed."""

import json

import pytest

from kubectl_ghost import cli
from kubectl_ghost.cluster.resources import PODS
from kubectl_ghost.commands import fault_inject, session
from kubectl_ghost.commands.fault import SUBCOMMANDS
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.domain.fault_catalogue import fault_kind, kinds
from kubectl_ghost.domain.faults import Effect, Reactor
from kubectl_ghost.operations.fault import ECC_KINDS
from tests.unit.operations import fleet
from tests.unit.operations.memory import Memory

NO_CLUSTER = ["--kubeconfig", "/dev/null", "--server", "https://127.0.0.1:1"]


def run(capfd, *arguments):
    code = cli.run(list(arguments))
    out, err = capfd.readouterr()
    return code, out, err


@pytest.fixture
def store(monkeypatch):
    """A fleet of two nodes behind every command."""
    store = fleet.cluster(2)
    monkeypatch.setattr(session, "writer", lambda _, dry_run, output=None: Memory(store, dry_run=dry_run))
    monkeypatch.setattr(session, "reader", lambda _: Memory(store))
    monkeypatch.setattr("kubectl_ghost.operations.evicting._LOOK_SECONDS", 0)
    monkeypatch.setattr("kubectl_ghost.operations.fault._LATECOMERS_SECONDS", 0)
    return store


def test_what_is_repeated_to_start_fast_is_what_the_domain_knows():
    assert set(fault_inject._NODE_KINDS) == {name for name in kinds() if fault_kind(name).per_node}
    assert sorted(fault_inject._REACTORS) == sorted(reactor.value for reactor in Reactor)
    assert list(fault_inject._TYPES) == list(ECC_KINDS)
    (effect,) = [option for option in fault_inject.injection("xid", "x").params if option.name == "effect"]
    assert list(effect.type.choices) == [found.value for found in Effect]


def test_the_help_tells_the_two_as_apart(capfd):
    out = run(capfd, "fault", "xid", "--help")[1]
    assert "To impersonate a user, put kubectl's --as before it" in " ".join(out.split())
    assert "kubectl ghost --as=USER fault xid node-3" in out


def test_there_is_a_command_for_every_kind():
    named = {name for name in SUBCOMMANDS if name not in ("list", "clear", "explain")}
    assert named - {"ecc"} | set(ECC_KINDS.values()) == set(kinds())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["xid", "node-0", "--as", "nobody"], "'nobody' is not one of device-plugin, dra"),
        (["xid", "node-0", "--effect", "Never"], "'Never' is not one of"),
        (["xid", "node-0", "--for", "0"], "a fault lasts at least a second"),
        (["xid", "node-0", "--code", "high"], "'high' is not a valid integer"),
        (["ecc", "node-0", "--type", "odd"], "'odd' is not one of"),
        (["gpu-lost", "node-0", "--code", "79"], "No such option"),
        (["gpu-explode", "node-0"], 'unknown command "gpu-explode" for "kubectl ghost fault"'),
        (["clear", "node-0", "--code", "79", "--kind", "thermal"], "--code goes with --kind xid"),
        (["list", "node-0", "--pool", "node"], "not both"),
    ],
)
def test_what_is_not_understood_is_not_dropped(arguments, words, capfd):
    code, out, err = run(capfd, "fault", *arguments, *NO_CLUSTER)
    assert (code, out) == (ExitCode.USAGE, "")
    assert words in err


@pytest.mark.parametrize("arguments", [["xid", "node-0", "-o", "wide"], ["explain", "-o", "wide"]])
def test_an_unknown_output_is_refused_before_anything_happens(arguments, capfd):
    code, _, err = run(capfd, "fault", *arguments, *NO_CLUSTER)
    assert code == ExitCode.ERROR
    assert "unable to match a printer" in err


def test_it_says_on_how_many_it_landed(store, capfd):
    code, out, err = run(capfd, "fault", "xid", "--pool", "node", "--random", "3")
    assert code == 0
    assert err.startswith("XID 79 on 3 GPUs of ")
    assert "node/node-0 configured\n" in out


def test_components_by_commas_or_one_by_one(store, capfd):
    every = ["--as", "dra,device-plugin", "--as", "nvsentinel"]
    run(capfd, "fault", "xid", "node-0", "gpu-2", *every)
    (fault,) = json.loads(run(capfd, "fault", "list", "-o", "json")[1])["items"]
    assert fault["spec"]["as"] == ["device-plugin", "dra", "nvsentinel"]
    assert fault["status"]["taint"]["effect"] == "NoSchedule"


@pytest.mark.parametrize(("words", "kind"), [([], "ecc-uncorrectable"), (["--type", "correctable"], "ecc-correctable")])
def test_types_of_memory_errors(words, kind, store, capfd):
    assert run(capfd, "fault", "ecc", "node-0/gpu-1", *words)[2] == f"{kind} on 1 GPU of 1 node\n"


def test_a_list_for_people_and_for_programs(store, capfd):
    run(capfd, "fault", "xid", "node-0/gpu-2")
    run(capfd, "fault", "thermal", "node-0/gpu-2", "node-1/gpu-0")
    out = run(capfd, "fault", "list")[1]
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["NAME", "FAULT"],
        ["node-0/gpu-2", "thermal"],
        ["node-0/gpu-2", "XID"],
        ["node-1/gpu-0", "thermal"],
    ]
    assert run(capfd, "get", "faults")[1].splitlines()[0] == out.splitlines()[0]
    assert run(capfd, "fault", "list", "node-0", "gpu-2", "-o", "name")[1] == (
        "fault.kubectl-ghost.dev/node-0/gpu-2\n" * 2
    )
    code, _, errors = run(capfd, "fault", "list", "--pool", "other", "--no-headers")
    assert (code, errors.splitlines()[0]) == (1, 'error: pool "other" not found')
    assert json.loads(run(capfd, "get", "faults", "node-0", "-o", "json")[1])["kind"] == "List"
    columns = "custom-columns=F:.status.fault"
    assert run(capfd, "get", "faults", "node-1", "-o", columns)[1] == "F\nthermal\n"


def test_a_node_without_faults_and_a_node_that_is_not_there(store, capfd):
    assert run(capfd, "fault", "list", "node-1") == (0, "", "No resources found\n")
    code, _, err = run(capfd, "fault", "list", "node-7")
    assert (code, err) == (1, 'Error from server (NotFound): nodes "node-7" not found\n')


def test_clearing_says_what_it_clears(store, capfd):
    run(capfd, "fault", "xid", "--pool", "node")
    code, out, err = run(capfd, "fault", "clear", "--all")
    assert (code, err) == (0, "Clearing 16 faults of 2 nodes\n")
    assert "node/node-1 configured\n" in out
    assert run(capfd, "fault", "clear", "--all") == (0, "", "No faults found\n")


def test_dry_runs_say_so_and_wait_for_nothing(store, capfd):
    store.put(PODS, fleet.pod("web", "node-0", gpus=1))
    out = run(capfd, "fault", "xid", "node-0", "--dry-run=client")[1]
    assert "node/node-0 configured (dry run)\n" in out
    assert "pod/web evicted (dry run)\n" in out
    assert store.names(PODS) == ["web"]
    assert run(capfd, "fault", "list")[1] == ""


@pytest.mark.parametrize("what", ["79", "xid-79", "XID 79", "XID79"])
def test_a_code_is_explained_however_it_is_written(what, capfd):
    code, out, _ = run(capfd, "fault", "explain", what)
    assert code == 0
    assert out.startswith("Name:             XID 79\nDescription:      GPU has fallen off the bus\n")
    assert "device taint gpu.nvidia.com/xid=79:NoSchedule\n" in out


def test_everything_is_listed_without_an_argument(capfd):
    lines = run(capfd, "fault", "explain")[1].splitlines()
    assert lines[0].split() == ["NAME", "CLASS", "RECOVERY", "REBOOT", "DESCRIPTION"]
    assert len(lines) == 1 + 13 + 112


def test_an_explanation_for_programs(capfd):
    view = json.loads(run(capfd, "fault", "explain", "gpu-lost", "-o", "json")[1])
    assert (view["kind"], view["metadata"]["name"], view["scope"]) == ("FaultExplanation", "gpu-lost", "gpu")


def test_a_code_that_there_is_none_of(capfd):
    code, _, err = run(capfd, "fault", "explain", "1")
    assert code == ExitCode.ERROR
    assert "XID 1 is marked unused" in err
