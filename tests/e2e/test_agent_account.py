"""The agent as a program of its own, with the account and the rights of its pod, against a real API server."""

import base64
import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest
import yaml

from kubectl_ghost.domain.keys import AGENT_NAME, AGENT_NAMESPACE
from kubectl_ghost.manifests.agent import cluster_role, cluster_role_binding, namespace, service_account
from tests.e2e.fleet import apply, audit_mark, claim_template, deployment, objects, pod, running
from tests.e2e.support import eventually
from tests.unit.agent.series import read, users

USER = f"system:serviceaccount:{AGENT_NAMESPACE}:{AGENT_NAME}"


def account_in(folder, cluster):
    """What the kubelet puts into a pod of this account, and where the API server is."""
    token = cluster.kubectl("create", "token", AGENT_NAME, "-n", AGENT_NAMESPACE).stdout
    (folder / "token").write_text(token)
    (reached,) = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"]
    authority = reached["cluster"].get("certificate-authority")
    if authority:
        shutil.copy(authority, folder / "ca.crt")
    else:
        (folder / "ca.crt").write_bytes(base64.b64decode(reached["cluster"]["certificate-authority-data"]))
    server = urlsplit(reached["cluster"]["server"])
    return {"KUBERNETES_SERVICE_HOST": server.hostname, "KUBERNETES_SERVICE_PORT": str(server.port)}


@pytest.fixture
def may(empty, tmp_path):
    """Give the agent its rights; returns how to run it with them, which gives its URL and what it says."""
    given = []

    @contextlib.contextmanager
    def run(*flags, read_only):
        given.extend([namespace(), service_account(), cluster_role(read_only=read_only), cluster_role_binding()])
        apply(empty, *given)
        places = account_in(tmp_path, empty)
        command = [sys.executable, "-m", "ghost_agent", "--port", "0", "--address", "127.0.0.1", "--account", tmp_path]
        process = subprocess.Popen(
            [*command, *flags], env={**empty.environment(), **places}, stderr=subprocess.PIPE, text=True
        )
        said = []
        try:
            began = process.stderr.readline()
            port = re.fullmatch(r"serving on port (\d+)\n", began)
            assert port, began
            yield f"http://127.0.0.1:{port[1]}", said
        finally:
            process.send_signal(signal.SIGTERM)
            said += process.communicate(timeout=30)[1].splitlines()
        assert process.returncode == 0

    yield run
    for item in reversed(given):
        empty.kubectl("delete", item["kind"], item["metadata"]["name"], "--ignore-not-found", *placed(item))


def placed(item):
    return ["-n", item["metadata"]["namespace"]] if "namespace" in item["metadata"] else []


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def ready(url):
    try:
        return get(f"{url}/readyz") == "OK"
    except urllib.error.HTTPError:
        return False


def held(url):
    """Pod -> GPUs that it is shown on."""
    found = {}
    for place, who in users(get(f"{url}/metrics")).items():
        for _, name, _, _ in who:
            found.setdefault(name.split("-")[0], []).append(place[1])
    return found


def recorded(cluster, app):
    (item,) = objects(cluster, "pods", "-l", f"app={app}")
    return item["metadata"].get("annotations", {}).get("kubectl-ghost.dev/gpus")


def done_by_the_agent(cluster, since):
    """(verb, resource) of every request of the account since a mark, and the verbs of those that were refused."""
    lines = (cluster.logs_dir / "audit.log").read_text().splitlines()[since:]
    events = [event for event in map(json.loads, lines) if event["user"]["username"] == USER]
    asked = {(event["verb"], event["objectRef"]["resource"]) for event in events}
    return asked, {event["verb"] for event in events if event.get("responseStatus", {}).get("code") == 403}


def test_its_rights_are_enough_and_it_sees_what_a_command_sees(empty, may):
    mark = audit_mark(empty)
    empty.ghost("add-pool", "--count", "1")
    apply(empty, claim_template("two", {"count": 2}), deployment(pod("claim", template="two"), 1))
    running(empty, "claim")
    with may(read_only=False) as (url, said):
        eventually(lambda: ready(url))
        assert held(url) == {"claim": [0, 1]}
        printed = empty.ghost("metrics", "print").stdout
        assert [series.key for series in read(get(f"{url}/metrics"))] == [series.key for series in read(printed)]
        empty.kubectl("delete", "deployment", "claim")
        eventually(lambda: held(url) == {})
        apply(empty, deployment(pod("counted", gpus=3), 1))
        running(empty, "counted")
        eventually(lambda: held(url) == {"counted": [0, 1, 2]})
        eventually(lambda: recorded(empty, "counted") == "gpu-0,gpu-1,gpu-2")
        empty.ghost("fault", "xid", "node-0", "gpu-7", "--code", "31")
        eventually(lambda: 'err_code="31"' in get(f"{url}/nodes/node-0/metrics"))
    assert said == []
    looked = {(verb, kind) for verb in ("list", "watch") for kind in ("nodes", "pods", "resourceclaims")}
    assert done_by_the_agent(empty, mark) == ({*looked, ("patch", "pods")}, set())


def test_without_the_right_to_record_it_serves_all_the_same(empty, may):
    mark = audit_mark(empty)
    empty.ghost("add-pool", "--count", "1")
    apply(empty, deployment(pod("counted", gpus=1), 1))
    running(empty, "counted")
    with may(read_only=True) as (url, said):
        eventually(lambda: ready(url))
        eventually(lambda: done_by_the_agent(empty, mark)[1] == {"patch"})
        assert held(url) == {"counted": [0]}
        assert ready(url)
    (problem,) = said
    assert problem.startswith("cannot record which GPUs pods have: PATCH /api/v1/namespaces/default/pods/counted-")
    assert "forbidden" in problem
    assert recorded(empty, "counted") is None


def test_outside_a_pod_it_says_what_to_use(empty, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ghost_agent", "--account", tmp_path],
        env={**empty.environment(), "KUBERNETES_SERVICE_HOST": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: this is not a pod with a service account\nOutside a pod use: kubectl ghost metrics serve\n"
    )
