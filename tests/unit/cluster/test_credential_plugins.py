"""The kubernetes library as it is installed, against a small exec plugin. Slow: it imports the library."""

import json
import sys

import pytest

from kubectl_ghost.cluster import credential_plugins
from kubectl_ghost.cluster.credentials import Credentials
from kubectl_ghost.cluster.kubeconfig import Target
from kubectl_ghost.domain.errors import GhostError

API = "client.authentication.k8s.io/v1"


@pytest.fixture
def plugin(tmp_path):
    """Make a user entry whose plugin answers with a status; `{count}` in it is how often it has been asked."""

    def make(status, code=0):
        script = tmp_path / "plugin.py"
        script.write_text(
            "import os, sys\n"
            f"path = {str(tmp_path / 'asked')!r}\n"
            "open(path, 'a').write('x')\n"
            "count = str(os.path.getsize(path))\n"
            f"answer = {json.dumps({'apiVersion': API, 'kind': 'ExecCredential', 'status': status})!r}\n"
            "print(answer.replace('{count}', count))\n"
            "print('spoke to nobody', file=sys.stderr)\n"
            f"sys.exit({code})\n"
        )
        return {"exec": {"apiVersion": API, "command": sys.executable, "args": [str(script)], "env": None}}

    return make


def issue(user):
    return credential_plugins.issue("https://h:1", {"tls-server-name": None}, user)


def test_a_token(plugin):
    assert issue(plugin({"token": "abc"})).authorization == "Bearer abc"


def test_a_certificate(plugin, certificates):
    pair = {
        "clientCertificateData": (certificates / "client.crt").read_text(),
        "clientKeyData": (certificates / "client.key").read_text(),
    }
    cluster = {"certificate-authority": str(certificates / "ca.crt")}
    assert Credentials(Target("c", "https://h", "default", cluster=cluster, user=plugin(pair))).ssl_context


def test_a_refused_token_is_asked_for_again(plugin):
    who = Credentials(Target("c", "http://h", "default", user=plugin({"token": "t{count}"})))
    assert who.authorization() == "Bearer t1"
    assert who.refresh("Bearer t1")
    assert who.authorization() == "Bearer t2"
    assert who.refresh("Bearer t1"), "another thread was faster: its token is tried, the plugin not asked"
    assert who.authorization() == "Bearer t2"


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        ({"token": "x"}, 3, "getting credentials: exec: process returned 3. spoke to nobody"),
        ("x", 0, "getting credentials: "),
        ([], 0, "getting credentials: "),
        ({}, 0, "getting credentials: exec: missing token or clientCertificateData field in plugin output"),
    ],
)
def test_failures_are_said(plugin, status, code, message, capfd):
    with pytest.raises(GhostError, match=message):
        issue(plugin(status, code))
    assert capfd.readouterr() == ("", "")


def test_a_missing_plugin_and_how_to_get_it():
    user = {"exec": {"apiVersion": API, "command": "no-such-plugin", "installHint": "brew install it"}}
    with pytest.raises(GhostError, match="getting credentials: exec: executable no-such-plugin not found") as caught:
        issue(user)
    assert caught.value.hint == "brew install it"


def test_oidc_and_providers_that_are_gone():
    # A token without an expiry is taken as it is.
    token = "e30.e30.c2ln"  # {}.{}.sig
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    assert issue(user).authorization == f"Bearer {token}"
    with pytest.raises(GhostError, match='no Auth Provider found for name "azure"'):
        issue({"auth-provider": {"name": "azure"}})
