"""The command lines of drain, cordon and uncordon: what is refused before the cluster is asked."""

import json

import pytest

from kubectl_ghost import cli
from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.commands import session
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.domain.draining import DrainRules
from kubectl_ghost.operations import drain
from kubectl_ghost.operations.drain import DrainRequest
from tests.unit.operations import fleet
from tests.unit.operations.memory import Memory

NO_CLUSTER = ["--kubeconfig", "/dev/null", "--server", "https://127.0.0.1:1"]


def run(capfd, *arguments):
    code = cli.run(list(arguments))
    out, err = capfd.readouterr()
    return code, out, err


@pytest.mark.parametrize("command", ["drain", "cordon", "uncordon"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name the nodes, or select them with -l"),
        (["-l", ""], "name the nodes, or select them with -l"),
        (["node-0", "-l", "a=b"], "cannot specify both a node name and a --selector option"),
    ],
)
def test_nodes_are_named_or_selected(command, arguments, words, capfd):
    code, out, err = run(capfd, command, *arguments, *NO_CLUSTER)
    assert (code, out) == (ExitCode.USAGE, "")
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--reboot-time", "5s"], "--reboot-time goes with --reboot"),
        (["--wait=false"], "--wait goes with --reboot"),
        (["--reboot", "--reboot-time", "0"], "a reboot takes at least a second"),
        (["--timeout", "soon"], "invalid duration"),
        (["--grace-period", "long"], "'long' is not a valid integer"),
    ],
)
def test_flags_that_make_no_sense_are_not_dropped(arguments, words, capfd):
    code, out, err = run(capfd, "drain", "node-0", *arguments, *NO_CLUSTER)
    assert (code, out) == (ExitCode.USAGE, "")
    assert words in err


def test_an_output_that_there_is_none_of_is_told_before_the_cluster_is_asked(capfd):
    code, _, err = run(capfd, "drain", "node-0", "-o", "wide", *NO_CLUSTER)
    assert code == ExitCode.ERROR
    assert "unable to match a printer" in err


@pytest.fixture
def store(monkeypatch):
    """A fleet behind every command, with two pods of a controller on the first node."""
    store = fleet.cluster(2)
    for name in ("web-0", "web-1"):
        store.put(PODS, fleet.pod(name, "node-0", owner=("ReplicaSet", "web")))
    monkeypatch.setattr(session, "writer", lambda _, dry_run, output=None: Memory(store, dry_run=dry_run))
    return store


def test_it_speaks_as_kubectl_drain_does(store, capfd):
    assert run(capfd, "drain", "node-0") == (
        0,
        "node/node-0 cordoned\n"
        "evicting pod default/web-0\n"
        "evicting pod default/web-1\n"
        "pod/web-0 evicted\n"
        "pod/web-1 evicted\n"
        "node/node-0 drained\n",
        "",
    )
    assert run(capfd, "cordon", "node-0")[1] == "node/node-0 already cordoned\n"
    assert run(capfd, "uncordon", "-l", "kubernetes.io/hostname=node-0")[1] == "node/node-0 uncordoned\n"
    assert run(capfd, "uncordon", "node-0")[1] == "node/node-0 already uncordoned\n"


def test_programs_get_every_pod_and_node_once(store, capfd):
    assert run(capfd, "drain", "node-0", "-o", "name")[1] == "pod/web-0\npod/web-1\nnode/node-0\n"


def test_the_node_is_printed_as_it_is_left(store, capfd):
    assert json.loads(run(capfd, "drain", "node-1", "-o", "json")[1])["spec"]["unschedulable"] is True


def test_dry_runs_say_so(store, capfd):
    out = run(capfd, "drain", "node-0", "--dry-run=client")[1]
    assert out.splitlines()[1:3] == [f"evicting pod default/web-{index} (dry run)" for index in range(2)]
    assert len(store.names(PODS)) == 2


def test_what_is_not_drained_is_an_error(store, capfd):
    store.put(PODS, fleet.pod("bare", "node-0"))
    code, out, err = run(capfd, "drain", "node-0", "node-1")
    assert code == ExitCode.ERROR
    assert out.endswith("node/node-1 drained\n")
    assert 'error: unable to drain node "node-0" due to error: cannot delete Pods that declare no controller' in err
    assert "To go on, run the same command again." in err


def test_a_reboot_that_is_not_waited_for_leaves_its_declaration(store, capfd):
    code, out, _ = run(capfd, "drain", "node-1", "--reboot", "--wait=false")
    assert (code, out) == (0, "node/node-1 cordoned\nnode/node-1 drained\nnode/node-1 rebooting\n")
    assert '"reboot":' in store.one(NODES, "node-1")["metadata"]["annotations"]["kubectl-ghost.dev/hardware"]


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ([], DrainRequest()),
        (["--force"], DrainRequest(DrainRules(force=True))),
        (["--ignore-daemonsets"], DrainRequest(DrainRules(ignore_daemonsets=True))),
        (["--delete-emptydir-data"], DrainRequest(DrainRules(delete_emptydir_data=True))),
        (["--pod-selector", "a=b"], DrainRequest(pod_selector="a=b")),
        (["--grace-period", "0"], DrainRequest(grace_seconds=0)),
        (["--grace-period=-1"], DrainRequest()),
        (["--disable-eviction"], DrainRequest(disable_eviction=True)),
        (["--timeout", "1m30s"], DrainRequest(timeout=90.0)),
    ],
)
def test_every_flag_arrives(store, capfd, monkeypatch, flags, wanted):
    requests = []

    def record(_, __, request, *___):
        requests.append(request)
        return iter(())

    monkeypatch.setattr(drain, "drain_nodes", record)
    assert run(capfd, "drain", "node-0", *flags)[0] == 0
    assert requests == [wanted]


def test_no_node_matches(store, capfd):
    assert run(capfd, "drain", "-l", "a=b") == (0, "", "No resources found\n")
