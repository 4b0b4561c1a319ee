"""The metrics agent as a pod on a real node: deployed, forwarded to, and gone without a trace."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest

from kubectl_ghost.engine.ports import is_free
from tests.e2e.fleet import apply, audit_mark, objects, pod, running, tool_writes
from tests.e2e.forwarding import nodes_in, port_forward, xids
from tests.e2e.support import eventually
from tests.realnode.harness.places import NODE_NAME

SPACE, NAME = "kubectl-ghost-metrics", "kubectl-ghost-agent"
ACCOUNT = f"system:serviceaccount:{SPACE}:{NAME}"
OBJECTS = [
    f"namespace/{SPACE}",
    f"serviceaccount/{NAME}",
    f"clusterrole.rbac.authorization.k8s.io/{NAME}",
    f"clusterrolebinding.rbac.authorization.k8s.io/{NAME}",
    f"configmap/{NAME}",
    f"pod/{NAME}",
]


def lines(verb):
    return "".join(f"{name} {verb}\n" for name in OBJECTS)


def present(cluster):
    """The agent's objects that there are."""
    found = cluster.kubectl("get", *OBJECTS, "-n", SPACE, "--ignore-not-found", "-o", "name").stdout
    return found.splitlines()


def agent_pod(cluster):
    return json.loads(cluster.kubectl("get", "pod", NAME, "-n", SPACE, "-o", "json").stdout)


def in_pod(cluster, code):
    """What a piece of Python prints in the agent's container."""
    return cluster.kubectl("exec", "-n", SPACE, NAME, "--", "python3", "-c", code).stdout.strip()


def can_i(cluster, verb, what):
    resource, _, subresource = what.partition("/")
    flags = ["--subresource", subresource] if subresource else []
    asked = cluster.kubectl("auth", "can-i", verb, resource, *flags, "-A", "--as", ACCOUNT, check=False)
    return asked.stdout.strip() == "yes"


def recorded(cluster, app):
    """The GPUs that are noted on an application's only pod."""
    [found] = objects(cluster, "pods", "-l", f"app={app}")
    return found["metadata"].get("annotations", {}).get("kubectl-ghost.dev/gpus", "").split(",")


def test_the_three_lines(empty):
    """What the tool is for, word for word."""
    eventually(lambda: is_free(9400), 120)
    empty.ghost("add-pool")
    empty.ghost("fault", "xid", "node-3", "gpu-2")
    with port_forward(empty) as forward:
        assert forward.port() == 9400
        text = forward.scrape()
        [(place, (xid, labels))] = xids(text).items()
        assert (place, xid) == (("node-3", "2"), 79)
        assert not {"pod", "namespace", "container"} & set(labels)
        assert nodes_in(text) == {"node-0", "node-1", "node-2", "node-3"}
        made = agent_pod(empty)
        assert made["spec"]["nodeName"] == NODE_NAME
        code, out, _ = forward.interrupt()
    assert code == 0
    assert out.startswith(lines("created"))
    assert out.count("deleted") == len(OBJECTS)
    eventually(lambda: not present(empty))


def test_a_second_run_attaches_and_leaves_the_agent_alone(empty):
    empty.ghost("add-pool")
    with port_forward(empty, "--port", "0") as first:
        first.port()
        before = agent_pod(empty)["metadata"]["uid"]
        with port_forward(empty, "--port", "0") as second:
            assert 'Hostname="node-0"' in second.scrape()
            assert second.port() != first.port()
            assert second.interrupt()[:2] == (0, "")
        assert agent_pod(empty)["metadata"]["uid"] == before
        assert 'Hostname="node-0"' in first.scrape()
        with port_forward(empty, "--port", "0", "--fields", "all") as third:
            code, _, said = third.end()
        assert code == 1
        assert "an agent with other options runs already" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_however_it_is_ended_nothing_is_left(empty, number):
    with port_forward(empty, "--port", "0") as forward:
        forward.port()
        forward.process.send_signal(number)
        assert forward.end()[0] == 0
    eventually(lambda: not present(empty))


def test_interrupted_before_the_pod_runs_it_leaves_nothing_either(empty):
    with port_forward(empty, "--port", "0", "--image", "example.invalid/python") as forward:
        eventually(lambda: f"pod/{NAME}" in present(empty))
        assert forward.interrupt()[0] == 130
    eventually(lambda: not present(empty))


def test_an_image_that_cannot_be_had_is_told_and_everything_deleted(empty):
    with port_forward(empty, "--port", "0", "--image", "example.invalid/python") as forward:
        code, _, said = forward.end()
    assert code == 1
    assert "its image example.invalid/python cannot be had" in said
    assert "--image" in said
    eventually(lambda: not present(empty))


def test_a_forward_that_breaks_is_begun_again(empty):
    empty.ghost("add-pool")
    with port_forward(empty, "--port", "0") as forward:
        forward.scrape()
        [kubectl] = forward.children()
        os.kill(kubectl, signal.SIGKILL)
        eventually(lambda: forward.children() not in ([], [kubectl]))
        assert 'Hostname="node-0"' in forward.scrape_again()


def test_when_the_agent_is_deleted_the_forward_ends(empty):
    with port_forward(empty, "--port", "0") as forward:
        forward.port()
        empty.ghost("metrics", "delete")
        code, _, said = forward.end()
    assert code == 1
    assert "the agent's pod serves no longer: it was deleted" in said


def test_deploy_says_what_it_makes_and_a_second_run_writes_nothing(empty):
    assert empty.ghost("metrics", "deploy").stdout == lines("created")
    since = audit_mark(empty)
    assert empty.ghost("metrics", "deploy").stdout == lines("unchanged")
    assert tool_writes(empty, since) == []
    since = audit_mark(empty)
    changed = empty.ghost("metrics", "deploy", "--read-only").stdout
    kept = [f"{name} unchanged" for name in OBJECTS if not name.startswith(("pod/", "clusterrole."))]
    assert [line for line in changed.splitlines() if line.endswith(" unchanged")] == kept
    assert {(event["verb"], event["objectRef"]["resource"]) for event in tool_writes(empty, since)} == {
        ("delete", "pods"),
        ("delete", "clusterroles"),
        ("create", "pods"),
        ("create", "clusterroles"),
    }
    assert "--read-only" in agent_pod(empty)["spec"]["containers"][0]["args"]


def test_delete_takes_everything_away_and_finds_nothing_the_second_time(empty):
    empty.ghost("metrics", "deploy")
    assert empty.ghost("metrics", "delete").stdout.count("deleted") == len(OBJECTS)
    assert present(empty) == []
    second = empty.ghost("metrics", "delete")
    assert (second.stdout, second.stderr) == ("", "No resources found\n")


def test_its_time_ends_the_pod_and_another_deploy_makes_a_new_one(empty):
    empty.ghost("metrics", "deploy", "--ttl", "5s")
    first = agent_pod(empty)["metadata"]["uid"]
    eventually(lambda: agent_pod(empty)["status"]["phase"] == "Failed", 60)
    assert agent_pod(empty)["status"]["reason"] == "DeadlineExceeded"
    empty.ghost("metrics", "deploy")
    second = agent_pod(empty)
    assert second["spec"]["activeDeadlineSeconds"] == 3600
    assert second["metadata"]["uid"] != first


def test_a_forward_ends_with_the_time_of_its_agent(empty):
    with port_forward(empty, "--port", "0", "--ttl", "8s") as forward:
        code, _, said = forward.end()
    assert code == 1
    assert "its time is over (--ttl 8s)" in said
    eventually(lambda: not present(empty))


def test_the_agent_may_do_what_it_needs_and_no_more(empty):
    empty.ghost("metrics", "deploy")
    allowed = [("list", "nodes"), ("watch", "pods"), ("list", "resourceclaims.resource.k8s.io"), ("patch", "pods")]
    refused = [
        *((verb, "secrets") for verb in ("get", "list")),
        *((verb, "pods") for verb in ("create", "delete", "update")),
        *(("patch", what) for what in ("nodes", "pods/status", "resourceclaims.resource.k8s.io")),
        *(("create", what) for what in ("pods/exec", "serviceaccounts/token")),
        ("list", "configmaps"),
    ]
    assert [what for what in allowed if not can_i(empty, *what)] == []
    assert [what for what in refused if can_i(empty, *what)] == []
    asked = (
        "import ssl, urllib.request, urllib.error\n"
        "at = '/var/run/secrets/kubernetes.io/serviceaccount/'\n"
        "request = urllib.request.Request('https://kubernetes.default.svc/api/v1/secrets'.replace("
        "'kubernetes.default.svc', __import__('os').environ['KUBERNETES_SERVICE_HOST']),"
        "headers={'Authorization': 'Bearer ' + open(at + 'token').read()})\n"
        "try: urllib.request.urlopen(request, context=ssl.create_default_context(cafile=at + 'ca.crt'))\n"
        "except urllib.error.HTTPError as error: print(error.code)"
    )
    assert in_pod(empty, asked) == "403"
    empty.ghost("metrics", "deploy", "--read-only")
    assert not can_i(empty, "patch", "pods")


def test_the_container_can_change_nothing_and_is_nobody(empty):
    empty.ghost("metrics", "deploy")
    tried = (
        "for path in '/x', '/tmp/x', '/agent/x':\n"
        "    try: open(path, 'w')\n"
        "    except OSError as error: print(path, error.strerror)"
    )
    assert in_pod(empty, tried).splitlines() == [
        f"{path} Read-only file system" for path in ("/x", "/tmp/x", "/agent/x")
    ]
    status = (
        "import re; print(re.findall(r'(Uid|CapEff|NoNewPrivs|Seccomp):\\s+(\\w+)', open('/proc/self/status').read()))"
    )
    assert in_pod(empty, status) == str([("Uid", "65532"), ("CapEff", "0" * 16), ("NoNewPrivs", "1"), ("Seccomp", "2")])


def test_a_pods_gpus_are_recorded_and_shown(empty):
    empty.ghost("add-pool", "--count", "1", "--advertise", "device-plugin")
    apply(empty, pod("train", gpus=2, tolerations=[{"operator": "Exists"}]))
    running(empty, "train")
    with port_forward(empty, "--port", "0") as forward:
        eventually(lambda: forward.scrape().count("DCGM_FI_DEV_GPU_UTIL{") == 8)
        eventually(lambda: len(re.findall(r'DCGM_FI_DEV_GPU_UTIL\{.*pod="train"', forward.scrape())) == 2)
        eventually(lambda: len(recorded(empty, "train")) == 2)


def test_a_counters_file_travels_with_it(empty, tmp_path):
    empty.ghost("add-pool", "--count", "1")
    counters = tmp_path / "counters.csv"
    counters.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, how busy it is\n")
    with port_forward(empty, "--port", "0", "--fields", str(counters)) as forward:
        assert re.findall(r"^# HELP (DCGM.*)$", forward.scrape(), re.MULTILINE) == [
            "DCGM_FI_DEV_GPU_UTIL how busy it is"
        ]


def test_a_dry_run_makes_nothing(empty):
    for mode in ("client", "server"):
        since = audit_mark(empty)
        said = empty.ghost("metrics", "deploy", f"--dry-run={mode}").stdout
        assert [line.split(" ", 1)[0] for line in said.splitlines()] == OBJECTS
        assert [event for event in tool_writes(empty, since) if "dryRun" not in event["requestURI"]] == []
    assert present(empty) == []
    documents = empty.ghost("metrics", "deploy", "--dry-run=client", "-o", "yaml").stdout
    assert empty.kubectl("apply", "--dry-run=client", "-f", "-", stdin=documents).stdout.count("(dry run)") == len(
        OBJECTS
    )
