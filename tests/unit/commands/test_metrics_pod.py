"""The command lines of metrics deploy, port-forward and delete: what is refused, what is handed on, what is left."""

import signal
import socket

import pytest

from kubectl_ghost import cli
from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.commands import metrics_serve, port_forwarding, session
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import KWOK_NODE_KEY
from tests.unit.domain.test_real_nodes import node
from tests.unit.operations.memory import Memory, Store

SPACE, NAME = "kubectl-ghost-metrics", "kubectl-ghost-agent"
OBJECTS = [
    f"namespace/{SPACE}",
    f"serviceaccount/{NAME}",
    f"clusterrole.rbac.authorization.k8s.io/{NAME}",
    f"clusterrolebinding.rbac.authorization.k8s.io/{NAME}",
    f"configmap/{NAME}",
    f"pod/{NAME}",
]
NO_CLUSTER = ["--kubeconfig", "/dev/null", "--server", "https://127.0.0.1:1"]
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def run(capfd, *arguments):
    code = cli.run(["metrics", *arguments])
    out, err = capfd.readouterr()
    return code, out, err


@pytest.fixture
def store(monkeypatch):
    """A cluster with a real node, on which pods become Ready as soon as they are made."""
    store = Store()
    store.put(NODES, node("worker"))

    class Cluster(Memory):
        def _create(self, resource, namespace, body):
            return super()._create(resource, namespace, {**body, "status": READY} if resource is PODS else body)

    monkeypatch.setattr(session, "writer", lambda *_: Cluster(store))
    monkeypatch.setattr(session, "announce", lambda _: None)
    return store


@pytest.fixture
def kubectl(monkeypatch, tmp_path):
    """A kubectl on PATH; what it would be called with is noted, and Ctrl-C pressed."""
    (tmp_path / "kubectl").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    calls = []

    def forward(command, port, *, why_over, listening, warn):
        calls.append(command(port))
        listening(port or 31234)
        raise KeyboardInterrupt

    monkeypatch.setattr(port_forwarding, "forward", forward)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield calls
    for number, handler in handlers.items():
        signal.signal(number, handler)


def left(store):
    return [key for key in store.objects if key[0] != "Node"]


def test_a_forward_makes_the_agent_and_deletes_it_in_the_end(store, kubectl, capfd, tmp_path):
    code, out, err = run(capfd, "port-forward", "--port", "0")
    assert code == ExitCode.OK
    made, gone = out.splitlines()[:6], out.splitlines()[6:]
    assert made == [f"{name} created" for name in OBJECTS]
    assert gone == [
        f'pod "{NAME}" deleted from {SPACE} namespace',
        f'configmap "{NAME}" deleted from {SPACE} namespace',
        f'clusterrolebinding.rbac.authorization.k8s.io "{NAME}" deleted',
        f'clusterrole.rbac.authorization.k8s.io "{NAME}" deleted',
        f'serviceaccount "{NAME}" deleted from {SPACE} namespace',
        f'namespace "{SPACE}" deleted',
    ]
    assert err == f"Forwarding http://localhost:31234/metrics to pod/{NAME}; Ctrl-C ends it\n"
    assert left(store) == []
    [command] = kubectl
    begun = [str(tmp_path / "kubectl"), "--namespace", SPACE, "port-forward", f"pod/{NAME}"]
    assert command == [*begun, "--address", "127.0.0.1", ":9400"]


def test_an_agent_that_runs_is_used_and_left_alone(store, kubectl, capfd):
    assert run(capfd, "deploy", "--ttl", "8h")[0] == ExitCode.OK
    before = left(store)
    code, out, _ = run(capfd, "port-forward", "--port", "0")
    assert (code, out) == (ExitCode.OK, "")
    assert left(store) == before
    assert len(kubectl) == 1


@pytest.mark.parametrize("flags", [["--ttl", "2h"], ["--fields", "all"], ["--read-only"], ["--image", "x"]])
def test_one_with_other_options_is_not_passed_off_as_what_was_asked_for(store, kubectl, capfd, flags):
    run(capfd, "deploy")
    code, _, err = run(capfd, "port-forward", "--port", "0", *flags)
    assert code == ExitCode.ERROR
    assert "an agent with other options runs already" in err
    assert kubectl == []
    run(capfd, "deploy", *flags)
    assert run(capfd, "port-forward", "--port", "0", *flags)[0] == ExitCode.OK


def test_where_only_simulated_nodes_are_it_serves_from_this_process(store, kubectl, capfd, monkeypatch):
    store.put(NODES, node("worker", annotations={KWOK_NODE_KEY: "fake"}))
    served = []
    monkeypatch.setattr(metrics_serve, "serve_here", lambda _, *given: served.append(given))
    code, out, err = run(capfd, "port-forward", "--port", "0", "--address", "127.0.0.1", "--read-only")
    assert (code, out) == (ExitCode.OK, "")
    assert err == "No node of this cluster can run the agent's pod: serving from this process instead\n"
    [(options, address, port)] = served
    assert (options.read_only, address, port) == (True, "127.0.0.1", 0)
    assert left(store) == []


def test_deploy_cannot_do_without_a_real_node(store, capfd):
    store.put(NODES, node("worker", ready="False"))
    code, out, err = run(capfd, "deploy")
    assert (code, out) == (ExitCode.ERROR, "")
    assert "no node can run the agent" in err
    assert "kubectl ghost metrics serve" in err
    assert left(store) == []


def test_without_kubectl_nothing_is_made(store, capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = run(capfd, "port-forward", "--port", "0")
    assert code == ExitCode.ERROR
    assert "kubectl is not on PATH" in err
    assert left(store) == []


def test_a_port_that_is_taken_is_told_before_anything_is_made(store, kubectl, capfd):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, _, err = run(capfd, "port-forward", "--port", str(port))
    assert code == ExitCode.ERROR
    assert f"cannot listen on port {port} of 127.0.0.1: Address already in use" in err
    assert left(store) == []


def test_an_address_that_is_none_is_told(store, kubectl, capfd):
    code, _, err = run(capfd, "port-forward", "--address", "no.such.host.invalid")
    assert code == ExitCode.ERROR
    assert "cannot listen on port 9400 of no.such.host.invalid" in err


@pytest.mark.parametrize("error", [GhostError("kubectl port-forward: no"), KeyboardInterrupt()])
def test_what_fails_before_it_is_forwarded_leaves_nothing(store, kubectl, capfd, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("kubectl_ghost.commands.agent_pod.wait_for_agent", fail)
    code, _, _ = run(capfd, "port-forward", "--port", "0")
    assert code == (ExitCode.ERROR if isinstance(error, GhostError) else ExitCode.INTERRUPTED)
    assert left(store) == []


def test_kubectl_speaks_to_the_same_cluster_as_the_same_user(store, kubectl, capfd):
    flags = ["--kubeconfig", "k", "--context", "c", "--as", "u", "--as-group", "a", "--as-group", "b"]
    dropped = ["-n", "elsewhere", "--request-timeout", "5s", "-v", "6"]
    run(capfd, "port-forward", "--port", "0", *flags, *dropped, "--insecure-skip-tls-verify")
    [command] = kubectl
    passed = set(command[1 : command.index("--namespace")])
    assert passed == {
        "--kubeconfig=k",
        "--context=c",
        "--as=u",
        "--as-group=a",
        "--as-group=b",
        "--insecure-skip-tls-verify",
    }
    assert command[command.index("--namespace") + 1] == SPACE


def test_no_time_is_no_deadline(store, capfd):
    run(capfd, "deploy", "--ttl", "0")
    assert "activeDeadlineSeconds" not in store.objects["Pod", SPACE, NAME]["spec"]
    run(capfd, "deploy", "--ttl", "1500ms")
    assert store.objects["Pod", SPACE, NAME]["spec"]["activeDeadlineSeconds"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["deploy", "--ttl", "soon"], "invalid duration 'soon'"),
        (["deploy", "--shard", "1/2"], "No such option"),
        (["port-forward", "--port", "70000"], "70000 is not in the range"),
        (["port-forward", "--dry-run=client"], "No such option"),
        (["delete", "pod"], "unexpected extra argument"),
    ],
)
def test_flags_that_make_no_sense_are_not_dropped(arguments, words, capfd):
    code, out, err = run(capfd, *arguments, *NO_CLUSTER)
    assert (code, out) == (ExitCode.USAGE, "")
    assert words in err


@pytest.mark.parametrize("name", ["deploy", "delete"])
def test_an_output_that_there_is_none_of_is_told_before_the_cluster_is_asked(name, capfd):
    code, _, err = run(capfd, name, "-o", "wide", *NO_CLUSTER)
    assert code == ExitCode.ERROR
    assert "unable to match a printer" in err


def test_fields_that_there_are_none_of_are_told_before_the_cluster_is_asked(capfd):
    for name in ("deploy", "port-forward"):
        code, _, err = run(capfd, name, "--fields", "nonsense", *NO_CLUSTER)
        assert code == ExitCode.ERROR
        assert "nonsense" in err


def test_deleting_nothing(store, capfd):
    assert run(capfd, "delete") == (ExitCode.OK, "", "No resources found\n")
