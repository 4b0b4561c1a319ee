"""What cannot be done is said in one line, with the way out, and nothing is written."""

import contextlib
import http.client
import http.server
import ssl
import threading
import urllib.parse
from pathlib import Path

import pytest
import yaml

from tests.e2e.fleet import apply, audit_mark, objects, tool_writes
from tests.e2e.support import Ghost, running_cluster

REAL = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real-0"}}


def refused(cluster, *arguments):
    since = audit_mark(cluster)
    done = cluster.ghost(*arguments, check=False)
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not [event for event in tool_writes(cluster, since) if event["responseStatus"]["code"] < 300]
    return done.stderr


def test_a_node_that_is_not_ours(empty):
    apply(empty, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a-1"}})
    apply(
        empty,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "b-1", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        },
    )
    for pool in ("a", "b"):
        errors = refused(empty, "add-pool", pool)
        assert f'node "{pool}-1" exists and is not managed by kubectl-ghost' in errors
        assert "Choose another pool name" in errors


def test_a_cluster_with_real_gpus(empty):
    apply(empty, {**REAL, "metadata": {"name": "real-0", "labels": {"nvidia.com/gpu.present": "true"}}})
    errors = refused(empty, "add-pool")
    assert 'this cluster has real GPUs: node "real-0"' in errors
    assert "--allow-mixed" in errors
    empty.ghost("add-pool", "--count", "1", "--allow-mixed")


def test_a_cluster_whose_real_gpus_have_no_label(empty):
    apply(empty, REAL)
    capacity = '{"status":{"capacity":{"nvidia.com/gpu":"8"}}}'
    empty.kubectl("patch", "node", "real-0", "--subresource=status", "--type=merge", "-p", capacity)
    assert "real GPUs" in refused(empty, "add-pool")


def test_a_cluster_that_people_work_on(empty):
    apply(empty, *[{**REAL, "metadata": {"name": f"real-{index}"}} for index in range(11)])
    assert "this cluster has 11 nodes that are not simulated" in refused(empty, "add-pool")
    empty.kubectl("delete", "node", "real-10")
    empty.ghost("add-pool", "--count", "1")


def test_kwoks_taint_where_plain_pods_have_other_nodes(empty):
    def tainted():
        return [
            "kwok.x-k8s.io/node" in str(node["spec"].get("taints"))
            for node in objects(empty, "nodes")
            if "kubectl-ghost" in str(node)
        ]

    empty.ghost("add-pool", "--count", "1")
    assert tainted() == [False]
    apply(empty, REAL)
    empty.ghost("sync")
    assert tainted() == [True]
    empty.ghost("add-pool", "--taint", "never")
    assert tainted() == [False]
    empty.kubectl("delete", "node", "real-0")
    empty.ghost("add-pool", "--taint", "always")
    assert tainted() == [True]


def test_rbac_names_the_missing_permission(empty):
    errors = refused(empty, "add-pool", "--as", "nobody")
    assert "Error from server (Forbidden)" in errors
    assert 'verb "list"' in errors
    assert 'resource "nodes"' in errors
    role = yaml.safe_dump(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "looker"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
        }
    )
    empty.kubectl("apply", "-f", "-", stdin=role)
    empty.kubectl("create", "clusterrolebinding", "looker", "--clusterrole=looker", "--user=looker")
    errors = refused(empty, "add-pool", "--as", "looker")
    assert 'verb "create"' in errors
    assert 'resource "deviceclasses"' in errors
    empty.ghost("status", "--as", "looker")
    empty.ghost("get", "gpus", "--as", "looker")


def test_no_kwok(empty, kwok_asleep):
    done = empty.ghost("add-pool", "--count", "2", "--timeout", "2s", check=False)
    assert done.returncode == 1
    assert "none of 2 nodes became Ready" in done.stderr
    assert "is kwok running in this cluster?" in done.stderr
    assert len(objects(empty, "nodes")) == 2
    assert "created" in empty.ghost("add-pool", "other", "--count", "1", "--wait=false").stdout


def test_an_api_server_without_dra(empty, without_dra):
    errors = refused(empty, "add-pool", "--server", without_dra)
    assert "resource.k8s.io/v1 is not served by this cluster (Kubernetes 1." in errors
    assert "--advertise device-plugin" in errors
    empty.ghost("add-pool", "--advertise", "device-plugin", "--server", without_dra)
    empty.ghost("add-pool", "--advertise", "device-plugin", "--server", without_dra)
    for command in (["sync"], ["status"], ["get", "gpus"], ["scale-pool", "node", "2"], ["delete-pool", "--all"]):
        empty.ghost(*command, "--server", without_dra)
    assert objects(empty, "nodes") == []


def test_a_gate_that_is_off_is_told(tmp_path):
    user = Ghost(tmp_path)
    user.home.mkdir()
    with contextlib.contextmanager(running_cluster)(user, "--feature-gates", "DRAExtendedResource=false") as cluster:
        done = cluster.ghost("add-pool", "--advertise", "dra", "--count", "1")
        assert "feature gate DRAExtendedResource" in done.stderr
        assert "claims will" in done.stderr
        again = cluster.ghost("add-pool", "--advertise", "dra", "--count", "1")
        assert set(again.stdout.split()[1::2]) == {"unchanged"}


@pytest.fixture
def without_dra(cluster):
    """Address of a server that passes everything on to the real one, but does not know resource.k8s.io."""
    config = yaml.safe_load(Path(cluster.kubeconfig).read_text())
    upstream = urllib.parse.urlsplit(config["clusters"][0]["cluster"]["server"])
    user = config["users"][0]["user"]
    context = ssl.create_default_context(cafile=config["clusters"][0]["cluster"]["certificate-authority"])
    context.load_cert_chain(user["client-certificate"], user["client-key"])

    class Forward(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "/resource.k8s.io/" in self.path:
                status, kind, answer = 404, "text/plain", b"404 page not found\n"
            else:
                connection = http.client.HTTPSConnection(upstream.hostname, upstream.port, context=context)
                headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                connection.request(self.command, self.path, body, headers)
                response = connection.getresponse()
                status, kind, answer = response.status, response.headers["Content-Type"], response.read()
                connection.close()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = forward

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forward)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()
