"""`kubectl ghost cluster` and the stages, on the real control plane."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ghost.engine.folders import ClusterFolder
from kubectl_ghost.engine.processes import COMPONENTS, running
from tests.e2e.support import E2ECluster, Ghost, eventually, exports, running_cluster

pytestmark = pytest.mark.e2e

NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{test: {test}}}
  annotations: {annotations}
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  template:
    metadata: {{annotations: {annotations}}}
    spec:
      restartPolicy: Never
      initContainers: [{{name: first, image: none}}, {{name: sidecar, image: none, restartPolicy: Always}}]
      containers: [{{name: main, image: none}}]
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      readinessGates: [{conditionType: example.com/ready}]
      containers: [{name: main, image: none}]
"""
FAKE = '{"kwok.x-k8s.io/node": "fake"}'


def _get(cluster: E2ECluster, *arguments: str) -> Any:
    return json.loads(cluster.kubectl("get", *arguments, "-o", "json").stdout)


def _ready(cluster: E2ECluster, node: str) -> dict[str, Any]:
    conditions = _get(cluster, "node", node)["status"].get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "Ready"), {})


@pytest.fixture(scope="module")
def node(cluster: E2ECluster) -> Iterator[str]:
    cluster.kubectl("apply", "-f", "-", stdin=NODE.format(name="stage-0", test="stages", annotations=FAKE))
    eventually(lambda: _ready(cluster, "stage-0").get("status") == "True")
    yield "stage-0"
    cluster.kubectl("delete", "node", "stage-0")


def test_up_again_changes_nothing(cluster: E2ECluster) -> None:
    before = _get(cluster, "stages")
    again = cluster.user("cluster", "up", "--name", cluster.name)
    assert f'cluster "{cluster.name}" unchanged' in again.stderr
    assert exports(again.stdout)["KUBECONFIG"] == str(cluster.kubeconfig)
    assert _get(cluster, "stages") == before


def test_the_exports_can_be_evaluated(cluster: E2ECluster) -> None:
    printed = cluster.user("cluster", "up", "--name", cluster.name).stdout
    shell = subprocess.run(
        ["sh", "-c", f"{printed}\nkubectl config current-context && kubectl version"],
        env={**cluster.environment(), "KUBECONFIG": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shell.stdout.startswith(f"kwok-{cluster.name}\n")
    assert "Server Version: v1.36" in shell.stdout


def test_the_users_folders_stay_untouched(cluster: E2ECluster) -> None:
    cluster.ghost("cluster", "status", "--name", cluster.name)
    assert not [path for path in cluster.user.home.rglob("*") if path.is_file()]


def test_requests_are_in_the_audit_log(cluster: E2ECluster) -> None:
    log = cluster.logs_dir / "audit.log"

    def askers() -> list[str]:
        """Who has asked for this namespace itself; the last line may still be being written."""
        *lines, _ = log.read_text(encoding="utf-8").split("\n")
        records = [line for line in map(json.loads, lines) if line["stage"] == "ResponseComplete"]
        found = [line for line in records if line["requestURI"] == "/api/v1/namespaces/default"]
        return [line["userAgent"].partition("/")[0] for line in found if line["verb"] == "get"]

    before = askers().count("kubectl")
    cluster.kubectl("get", "namespace", "default")
    eventually(lambda: askers().count("kubectl") > before)
    assert askers().count("kubectl") == before + 1


def test_other_settings_are_refused(cluster: E2ECluster) -> None:
    refused = cluster.user("cluster", "up", "--name", cluster.name, "--feature-gates", "AllAlpha=true", check=False)
    assert refused.returncode == 1
    assert "another setting of feature gates" in refused.stderr
    assert f"cluster down --name {cluster.name}" in refused.stderr


def test_status_and_list(cluster: E2ECluster) -> None:
    status = cluster.user("cluster", "status", "--name", cluster.name).stdout
    assert status.count("Healthy") == len(COMPONENTS)
    listed = cluster.user("cluster", "list").stdout.splitlines()
    assert listed[0].split() == ["NAME", "STATUS", "VERSION", "SERVER", "AGE"]
    assert any(line.split()[:2] == [cluster.name, "Running"] for line in listed)


def test_only_nodes_that_are_marked_are_played(cluster: E2ECluster, node: str) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=NODE.format(name="real-0", test="stages", annotations="{}"))
    try:
        assert _ready(cluster, node)["reason"] == "KubeletReady"
        status = _get(cluster, "node", node)["status"]
        assert status["phase"] == "Running"
        assert status["daemonEndpoints"]["kubeletEndpoint"]["Port"] > 0
        assert status["nodeInfo"]["kubeletVersion"] == "kwok-v0.8.0"
        # A node marked later than the other and Ready shows that kwok has seen the other and left it.
        cluster.kubectl("apply", "-f", "-", stdin=NODE.format(name="stage-1", test="stages", annotations=FAKE))
        eventually(lambda: _ready(cluster, "stage-1").get("status") == "True")
        assert "phase" not in _get(cluster, "node", "real-0")["status"]
        assert "addresses" not in _get(cluster, "node", "real-0")["status"]
    finally:
        cluster.kubectl("delete", "node", "real-0", "stage-1", "--ignore-not-found")


def test_a_node_keeps_its_own_capacity(cluster: E2ECluster) -> None:
    manifest = NODE.format(name="sized-0", test="stages", annotations=FAKE)
    manifest += 'status: {capacity: {cpu: "3", example.com/thing: "8"}, allocatable: {cpu: "2"}}\n'
    cluster.kubectl("create", "-f", "-", stdin=manifest)
    eventually(lambda: _ready(cluster, "sized-0").get("status") == "True")
    status = _get(cluster, "node", "sized-0")["status"]
    cluster.kubectl("delete", "node", "sized-0")
    assert status["capacity"] == {"cpu": "3", "example.com/thing": "8"}
    assert status["allocatable"] == {"cpu": "2"}


def test_a_deployment_runs(cluster: E2ECluster, node: str) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    pods = _get(cluster, "pods", "-l", "app=web")["items"]
    cluster.kubectl("delete", "deployment", "web")
    assert {pod["spec"]["nodeName"] for pod in pods} == {node}
    assert len({pod["status"]["podIP"] for pod in pods}) == 2
    eventually(lambda: not _get(cluster, "pods", "-l", "app=web")["items"])


def test_a_job_completes_at_once(cluster: E2ECluster, node: str) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=JOB.format(name="quick", annotations="{}"))
    cluster.kubectl("wait", "--for=condition=complete", "job/quick", "--timeout=60s")
    pod = _get(cluster, "pods", "-l", "job-name=quick")["items"][0]
    cluster.kubectl("delete", "job", "quick")
    states = [*pod["status"]["containerStatuses"], *pod["status"]["initContainerStatuses"]]
    assert [list(status["state"]) for status in states] == [["terminated"]] * 3


def test_a_job_runs_for_its_duration(cluster: E2ECluster, node: str) -> None:
    annotations = '{"kubectl-ghost.dev/duration": "3s"}'
    cluster.kubectl("apply", "-f", "-", stdin=JOB.format(name="lasting", annotations=annotations))
    eventually(lambda: _get(cluster, "job", "lasting")["status"].get("ready") == 1)
    # A change of the pod must not make its time begin anew.
    cluster.kubectl("annotate", "pod", "-l", "job-name=lasting", "touched=yes")
    cluster.kubectl("wait", "--for=condition=complete", "job/lasting", "--timeout=60s")
    terminated = _get(cluster, "pods", "-l", "job-name=lasting")["items"][0]["status"]["containerStatuses"][0]
    cluster.kubectl("delete", "job", "lasting")
    times = terminated["state"]["terminated"]
    assert times["finishedAt"] > times["startedAt"]


@pytest.mark.parametrize("message", ["", "maintenance"])
def test_a_node_goes_down_and_comes_back(cluster: E2ECluster, node: str, message: str) -> None:
    cluster.kubectl("annotate", "node", node, f"kubectl-ghost.dev/node-down={message}")
    eventually(lambda: _ready(cluster, node)["status"] == "False")
    assert _ready(cluster, node)["message"] == (message or "declared down by kubectl-ghost")
    cluster.kubectl("label", "node", node, "touched=yes", "--overwrite")
    assert _ready(cluster, node)["status"] == "False"
    cluster.kubectl("annotate", "node", node, "kubectl-ghost.dev/node-down-")
    eventually(lambda: _ready(cluster, node)["status"] == "True")


def test_printed_stages_are_those_installed(cluster: E2ECluster) -> None:
    printed = cluster.ghost("stages").stdout
    names = {document["metadata"]["name"] for document in yaml.safe_load_all(printed)}
    assert names == {item["metadata"]["name"] for item in _get(cluster, "stages")["items"]}
    cluster.kubectl("diff", "--server-side", "--force-conflicts", "-f", "-", stdin=printed)


def test_two_clusters_side_by_side_and_down_removes_everything(cluster: E2ECluster, tmp_path: Path) -> None:
    other_user = Ghost(tmp_path)
    other_user.home.mkdir()
    own = other_user.home / ".kube" / "config"
    own.parent.mkdir()
    own.write_text("current-context: mine\ncontexts:\n- {name: mine, context: {cluster: a, user: b}}\n")
    before = own.read_text()
    for second in running_cluster(other_user, "--merge-kubeconfig"):
        merged = yaml.safe_load(own.read_text())
        assert merged["current-context"] == f"kwok-{second.name}"
        second.kubectl("apply", "-f", "-", stdin=NODE.format(name="second-0", test="two", annotations=FAKE))
        eventually(lambda it=second: _ready(it, "second-0").get("status") == "True")
        assert cluster.kubectl("get", "node", "second-0", check=False).returncode == 1
        folder = ClusterFolder(second.name, second.kubeconfig.parent)
        assert set(running(folder)) == set(COMPONENTS)
    assert not running(folder)
    assert not folder.root.exists()
    restored, original = yaml.safe_load(own.read_text()), yaml.safe_load(before)
    assert restored["contexts"] == original["contexts"]
    assert restored["current-context"] == "mine"
    assert "unchanged" in other_user("cluster", "down", "--name", second.name).stdout
    assert other_user("cluster", "status", "--name", second.name, check=False).returncode == 1


def test_a_component_that_fails_shows_its_log(user: Ghost) -> None:
    try:
        failed = user("cluster", "up", "--name", "failing", "--feature-gates", "NoSuchGate=true", check=False)
        assert failed.returncode == 1
        assert "unrecognized feature gate: NoSuchGate" in failed.stderr
        assert 'error: cluster "failing" did not start: kube-apiserver: it has exited' in failed.stderr
        assert "logs/kube-apiserver.log" in failed.stderr
        assert not running(ClusterFolder("failing", user.root / "state" / "kubectl-ghost" / "clusters" / "failing"))
    finally:
        user("cluster", "down", "--name", "failing")


def test_recovery_from_kill_and_from_lost_components(user: Ghost) -> None:
    """Killed while it is made, it is made anew; with components gone, it is started and has kept its objects."""
    folder = ClusterFolder("recovering", user.root / "state" / "kubectl-ghost" / "clusters" / "recovering")
    up = ["cluster", "up", "--name", folder.name]
    try:
        first = subprocess.Popen(
            [sys.executable, "-m", "kubectl_ghost", *up],
            env=user.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(lambda: "kube-apiserver" in running(folder), seconds=60)
        first.kill()
        first.wait()
        again = user(*up)
        assert "was left half made" in again.stderr
        printed = exports(again.stdout)
        made = E2ECluster(folder.name, user, folder.kubeconfig, Path(printed["PATH"].removesuffix(":$PATH")))
        made.kubectl("create", "namespace", "kept")
        for component in ("kwok-controller", "etcd", "kube-apiserver"):
            os.kill(running(folder)[component], signal.SIGKILL)
        # As after a reboot: the number that kwokctl noted is somebody else's now.
        (folder.components / "pids" / "etcd.pid").write_text(str(os.getpid()))
        eventually(lambda: "etcd" not in running(folder))
        assert user("cluster", "status", "--name", folder.name, check=False).returncode == 1
        assert f'cluster "{folder.name}" started' in user(*up).stderr
        made.kubectl("get", "namespace", "kept")
        made.kubectl("apply", "-f", "-", stdin=NODE.format(name="back-0", test="back", annotations=FAKE))
        eventually(lambda: _ready(made, "back-0").get("status") == "True")
    finally:
        user("cluster", "down", "--name", folder.name)
