"""The node itself: pods on it run, and kwok's nodes are simulated beside it."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from kubectl_ghost.manifests.agent import DEFAULT_IMAGE
from tests.e2e.fleet import apply, objects, pod, running
from tests.e2e.support import eventually
from tests.realnode.harness.places import NODE_NAME

SERVER = """\
import http.server, pathlib, json, os, ssl, urllib.error, urllib.request
account = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:443{self.path}"
        request = urllib.request.Request(url, headers={"Authorization": "Bearer " + (account / "token").read_text()})
        try:
            trust = ssl.create_default_context(cafile=account / "ca.crt")
            status = urllib.request.urlopen(request, context=trust, timeout=5).status
        except urllib.error.HTTPError as error:
            status = error.code
        self.send_response(status); self.end_headers(); self.wfile.write(b"from the pod")
print("serving as", os.getuid(), flush=True)
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""


def python_pod(name, code, **spec):
    """A pod of the stock Python on the real node."""
    made = pod(name, nodeSelector={"kubernetes.io/hostname": NODE_NAME}, terminationGracePeriodSeconds=0, **spec)
    made["spec"]["containers"] = [{"name": "main", "image": DEFAULT_IMAGE, "command": ["python3", "-c", code]}]
    return made


@pytest.fixture
def server(empty):
    """A pod that asks the API server what it is asked itself, and answers with the same status."""
    apply(empty, python_pod("server", SERVER))
    running(empty, "server")
    eventually(lambda: empty.kubectl("logs", "server").stdout == "serving as 0\n")


@pytest.fixture
def forwarded(empty):
    """Forwards a port of a pod and gives the local one."""
    processes = []

    def forward(name, port):
        process = subprocess.Popen(
            [empty.bin_dir / "kubectl", "port-forward", f"pod/{name}", f":{port}"],
            env=empty.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return int(re.search(r":(\d+) ->", process.stdout.readline())[1])

    yield forward
    for process in processes:
        process.kill()
        process.communicate()


def test_the_node_is_ready_and_real(cluster):
    [node] = [item for item in objects(cluster, "nodes") if item["metadata"]["name"] == NODE_NAME]
    assert {item["type"]: item["status"] for item in node["status"]["conditions"]}["Ready"] == "True"
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
    assert "kwok" not in json.dumps(node["metadata"] | {"managedFields": None})


def test_a_python_pod_runs_logs_and_is_reached_through_a_port_forward(empty, server, forwarded):
    port = forwarded("server", 8000)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/version") as answer:
        assert answer.read() == b"from the pod"
    assert empty.kubectl("exec", "-i", "server", "--", "cat", stdin="through exec").stdout == "through exec"


def test_a_pods_token_is_known_at_the_address_of_the_api_service(server, forwarded):
    port = forwarded("server", 8000)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api") as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/secrets")


def test_pods_reach_nothing_outside(empty):
    code = "import socket\ntry: socket.create_connection(('192.0.2.1', 80), 20)\nexcept OSError as e: print(e.strerror)"
    apply(empty, python_pod("curious", code, restartPolicy="Never"))
    eventually(lambda: empty.kubectl("logs", "curious", check=False).stdout == "Connection refused\n")


def test_simulated_nodes_and_pods_run_beside_it(empty):
    empty.ghost("add-pool", "--count", "2")
    apply(empty, pod("gpu", gpus=8, tolerations=[{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]))
    running(empty, "gpu")
    [simulated] = objects(empty, "pods", "-l", "app=gpu")
    assert simulated["spec"]["nodeName"] in ("node-0", "node-1")
    [node] = [item for item in objects(empty, "nodes") if item["metadata"]["name"] == NODE_NAME]
    assert "nvidia.com/gpu" not in node["status"]["capacity"]
