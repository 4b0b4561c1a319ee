"""Which server, which user: kubectl's precedence, case by case."""

import json
import os

import pytest

from kubectl_ghost.cluster import kubeconfig
from kubectl_ghost.cluster.kubeconfig import Overrides, load
from kubectl_ghost.domain.errors import GhostError

FIRST = """
apiVersion: v1
kind: Config
current-context: one
contexts:
- name: one
  context: {cluster: c1, user: u1, namespace: ns1}
- name: two
  context: {cluster: c2, user: u2}
- name: broken
  context: {cluster: nowhere, user: u1}
clusters:
- name: c1
  cluster: {server: "https://one:6443/", certificate-authority: pki/ca.crt, tls-server-name: inner}
- name: c2
  cluster: {server: "https://two:6443", insecure-skip-tls-verify: true, proxy-url: "http://proxy:3128"}
users:
- name: u1
  user: {client-certificate: u1.crt, client-key: /abs/u1.key, exec: {command: ./bin/login, args: [x]}}
- name: u2
  user: {username: 12345, password: 678, as: boss, as-groups: [g1]}
"""
SECOND = """
current-context: two
contexts:
- name: one
  context: {cluster: other, user: other}
- name: three
  context: {cluster: c3}
clusters:
- name: c3
  cluster: {server: "three:80"}
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "first").write_text(FIRST)
    (tmp_path / "second").write_text(SECOND)
    return {"KUBECONFIG": f"{tmp_path}/a/first:{tmp_path}/missing::{tmp_path}/second", "HOME": str(tmp_path)}


def test_the_first_file_wins_and_missing_ones_are_ignored(files):
    target = load(Overrides(), files)
    assert (target.context, target.server, target.namespace) == ("one", "https://one:6443", "ns1")
    assert load(Overrides(context="three"), files).server == "http://three:80"


def test_paths_are_relative_to_their_file(files, tmp_path):
    target = load(Overrides(), files)
    assert target.cluster["certificate-authority"] == f"{tmp_path}/a/pki/ca.crt"
    assert target.user["client-certificate"] == f"{tmp_path}/a/u1.crt"
    assert target.user["client-key"] == "/abs/u1.key"
    assert os.path.normpath(target.user["exec"]["command"]) == f"{tmp_path}/a/bin/login"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"context": "two"}, {"server": "https://two:6443", "namespace": "default", "context": "two"}),
        ({"namespace": "x"}, {"namespace": "x"}),
        ({"cluster": "c2"}, {"server": "https://two:6443", "namespace": "ns1"}),
        ({"server": "https://else:1/"}, {"server": "https://else:1"}),
        ({"server": "else:1"}, {"server": "https://else:1"}),
        ({"context": "broken", "server": "https://else:1"}, {"server": "https://else:1"}),
        ({"request_timeout": 5.0}, {"request_timeout": 5.0}),
        ({"request_timeout": 0.0}, {"request_timeout": None}),
        ({"context": "two"}, {"proxy_url": "http://proxy:3128", "disable_compression": False}),
        ({"disable_compression": True}, {"disable_compression": True}),
    ],
)
def test_flags_of_the_place(files, overrides, expected):
    target = load(Overrides(**overrides), files)
    assert {key: getattr(target, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("overrides", "part", "expected"),
    [
        ({"server": "https://else:1"}, "cluster", {"tls-server-name": None}),
        ({"tls_server_name": "outer"}, "cluster", {"tls-server-name": "outer"}),
        ({"certificate_authority": "my.crt"}, "cluster", {"certificate-authority": "my.crt"}),
        ({"insecure_skip_tls_verify": True}, "cluster", {"certificate-authority": None}),
        ({"context": "two", "certificate_authority": "ca"}, "cluster", {"insecure-skip-tls-verify": False}),
        ({"client_certificate": "my.crt"}, "user", {"client-certificate": "my.crt", "client-key": "/abs/u1.key"}),
        ({"token": "t"}, "user", {"token": "t", "exec": None}),
        ({"username": "n", "password": "p"}, "user", {"username": "n", "password": "p", "exec": None}),
        ({"context": "two", "as_user": "me"}, "user", {"as": "me", "as-groups": ["g1"]}),
        ({"as_user": "me", "as_groups": ("a", "b"), "as_uid": "7"}, "user", {"as-groups": ["a", "b"], "as-uid": "7"}),
        ({"as_user": "me", "as_user_extra": ("k=1", "k=2=3")}, "user", {"as-user-extra": {"k": ["1", "2=3"]}}),
        ({"user": "u2"}, "user", {"username": 12345, "as": "boss"}),
    ],
)
def test_flags_of_trust_and_identity(files, overrides, part, expected):
    entry = getattr(load(Overrides(**overrides), files), part)
    assert {key: entry.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"context": "x"}, 'context "x" does not exist'),
        ({"cluster": "x"}, 'cluster "x" does not exist'),
        ({"context": "broken"}, 'cluster "nowhere" does not exist'),
        ({"user": "x"}, 'auth info "x" does not exist'),
        ({"kubeconfig": "/nowhere/config"}, "stat /nowhere/config: no such file or directory"),
        ({"token": "t", "username": "u"}, "more than one authentication method"),
        ({"as_groups": ("g",)}, "without impersonating a user"),
        ({"as_uid": "7"}, "without impersonating a user"),
        ({"as_user_extra": ("k",)}, "not of the form key=value"),
        ({"as_user": "u", "as_user_extra": ("k",)}, "not of the form key=value"),
        ({"server": "ftp://x"}, "neither http:// nor https://"),
        ({"insecure_skip_tls_verify": True, "certificate_authority": "ca"}, "with the insecure flag is not allowed"),
    ],
)
def test_what_does_not_fit_is_refused(files, overrides, message):
    with pytest.raises(GhostError, match=message):
        load(Overrides(**overrides), files)


def test_without_any_configuration_kubectls_last_resort(tmp_path):
    target = load(Overrides(), {"HOME": str(tmp_path)})
    assert (target.server, target.configured, target.context) == ("http://localhost:8080", False, "")


def test_the_home_file_is_used_when_the_variable_is_not_set(files, tmp_path):
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(FIRST)
    assert load(Overrides(), {"HOME": str(tmp_path)}).server == "https://one:6443"


def test_the_explicit_file_is_the_only_one(files, tmp_path):
    assert load(Overrides(kubeconfig=f"{tmp_path}/second", context="three"), files).server == "http://three:80"


def test_in_a_pod_the_service_account(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("ml\n")
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT_FOLDER", str(tmp_path))
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    target = load(Overrides(as_user="me"), environ)
    assert (target.server, target.namespace) == ("https://[fd00::1]:443", "ml")
    assert target.user == {"tokenFile": f"{tmp_path}/token", "as": "me"}
    assert target.cluster["certificate-authority"] == f"{tmp_path}/ca.crt"


@pytest.mark.parametrize("content", ["a: [", "- a", "contexts: 3", "users: [{user: {}}]"])
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path, content):
    (tmp_path / "bad").write_text(content)
    with pytest.raises(GhostError, match=r'error loading config file ".*/bad": '):
        load(Overrides(kubeconfig=str(tmp_path / "bad")), {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("clusters: {a: 1}", "clusters is not a list"),
        ("contexts: [1]", r"contexts\[0\] is not a map"),
        ("users: [null]", r"users\[0\] is not a map"),
        ("users: [{name: null, user: {}}]", r"users\[0\] has no name"),
        ("users: [{name: [u]}]", r"users\[0\].name is not text"),
        ("current-context: [a]", "current-context is not text"),
        ("clusters: [{name: c, cluster: x}]", 'cluster "c" is not a map'),
        ("clusters: [{name: c, cluster: {server: [x]}}]", 'cluster "c": server is not text'),
        ("clusters: [{name: c, cluster: {proxy-url: {}}}]", 'cluster "c": proxy-url is not text'),
        (
            "clusters: [{name: c, cluster: {insecure-skip-tls-verify: 'false'}}]",
            'cluster "c": insecure-skip-tls-verify is neither true nor false',
        ),
        ("contexts: [{name: x, context: {user: [u]}}]", 'context "x": user is not text'),
        ("users: [{name: u, user: {exec: foo}}]", 'user "u": exec is not a map'),
        ("users: [{name: u, user: {exec: {command: a, args: b}}}]", 'user "u": exec.args is not a list'),
        ("users: [{name: u, user: {exec: {command: a, env: [1]}}}]", r'user "u": exec.env\[0\] is not a map'),
        ("users: [{name: u, user: {auth-provider: foo}}]", 'user "u": auth-provider is not a map'),
        ("users: [{name: u, user: {as: a, as-groups: g}}]", 'user "u": as-groups is not a list'),
        ("users: [{name: u, user: {as: a, as-groups: [null]}}]", r'user "u": as-groups\[0\] is not text'),
        ("users: [{name: u, user: {as: a, as-user-extra: [a]}}]", 'user "u": as-user-extra is not a map'),
        ("users: [{name: u, user: {as: a, as-user-extra: {k: v}}}]", 'user "u": as-user-extra.k is not a list'),
        ("users: [{name: u, user: {token: 2024-13-45}}]", "yaml: month must be in 1..12"),
        ("users: [{name: u, user: {token: !!bool x}}]", "yaml: 'x'"),
    ],
)
def test_an_entry_of_the_wrong_form_is_named(tmp_path, content, message):
    (tmp_path / "bad").write_text(content)
    with pytest.raises(GhostError, match=rf'error loading config file ".*/bad": {message}'):
        load(Overrides(kubeconfig=str(tmp_path / "bad")), {})


@pytest.mark.parametrize("content", ["", "clusters: null\nusers:\ncontexts: []", "users: [{name: u, user: null}]"])
def test_what_is_empty_is_fine(tmp_path, content):
    (tmp_path / "config").write_text(content)
    assert load(Overrides(kubeconfig=str(tmp_path / "config")), {}).server == "http://localhost:8080"


BAD_URLS = [
    "http://host:bad",
    "https://host:99999",
    "https://[::1",
    "https://",
    "https://h:0",
    "https://ü..b",
    "https://a b",
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_server_that_is_no_url_is_named_with_its_place(tmp_path, url):
    with pytest.raises(GhostError) as caught:
        load(Overrides(server=url), {"HOME": str(tmp_path)})
    assert caught.value.message.startswith(f'invalid URL "{url}" in --server: ')
    config = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    with pytest.raises(GhostError) as caught:
        load(Overrides(kubeconfig=str(tmp_path / "config")), {})
    assert caught.value.message.startswith(f'invalid URL "{url}" in cluster "c" of the kubeconfig: ')


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://h:bad", "its port is not a number from 1 to 65535"),
        ("https://h:99999", "its port is not a number from 1 to 65535"),
        ("https://[::1", "its host is none"),
        ("https://", "it names no host and port to connect to"),
    ],
)
def test_what_is_wrong_with_a_url_is_said(url, problem):
    with pytest.raises(GhostError, match=problem) as caught:
        load(Overrides(server=url), {"HOME": "/nowhere"})
    assert caught.value.hint == "it should look like https://HOST:PORT"


def test_a_path_that_cannot_be_one(tmp_path):
    with pytest.raises(GhostError, match="the path of the kubeconfig cannot be used: embedded null byte"):
        load(Overrides(kubeconfig="a\0b"), {})
    with pytest.raises(GhostError, match="is a directory"):
        load(Overrides(kubeconfig=str(tmp_path)), {})


def test_secrets_are_not_in_the_repr(files):
    assert "678" not in repr(load(Overrides(context="two"), files))
    assert "hush" not in repr(Overrides(token="hush", password="hush"))
