"""What goes over the wire for each kind of user entry."""

import base64
import os
import ssl

import pytest

from kubectl_ghost.cluster import credentials
from kubectl_ghost.cluster.credentials import Credentials, impersonation_headers
from kubectl_ghost.cluster.kubeconfig import Target
from kubectl_ghost.domain.errors import GhostError


def made(user=None, cluster=None, server="http://h"):
    return Credentials(Target("c", server, "default", cluster=cluster or {}, user=user or {}))


def data(path):
    return base64.b64encode(path.read_bytes()).decode()


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, ""),
        ({"token": "abc\n"}, "Bearer abc"),
        ({"username": 12345, "password": "ö"}, "Basic " + base64.b64encode("12345:ö".encode()).decode()),
        ({"token": "inline", "tokenFile": "/nowhere"}, "Bearer inline"),
    ],
)
def test_authorization(user, header):
    assert made(user).authorization() == header


def test_a_token_file_is_read_again_after_a_refusal(tmp_path):
    (tmp_path / "token").write_text("one\n")
    who = made({"tokenFile": str(tmp_path / "token"), "token": "never"})
    assert who.authorization() == "Bearer one"
    assert not who.refresh("Bearer one")
    (tmp_path / "token").write_text("two")
    assert who.authorization() == "Bearer one"
    assert who.refresh("Bearer one")
    assert who.authorization() == "Bearer two"


def test_a_token_file_that_is_missing_is_named():
    with pytest.raises(GhostError, match="unable to read tokenFile /nowhere: no such file or directory"):
        made({"tokenFile": "/nowhere"}).authorization()


def test_impersonation():
    user = {
        "as": "me",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"example.com/k y": ["1", "2"], "b": None},
    }
    assert impersonation_headers(user) == [
        ("Impersonate-User", "me"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.com%2Fk%20y", "1"),
        ("Impersonate-Extra-example.com%2Fk%20y", "2"),
    ]


@pytest.mark.parametrize("kind", ["files", "data", "mixed"])
def test_client_certificates(certificates, kind, monkeypatch):
    left = []
    real = os.unlink
    monkeypatch.setattr(os, "unlink", lambda path: (left.append((os.stat(path).st_mode & 0o777, path)), real(path)))
    certificate, key = certificates / "client.crt", certificates / "client.key"
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    if kind != "files":
        user["client-key-data"] = data(key)
    if kind == "data":
        user["client-certificate-data"] = data(certificate)
    assert made(user, {"certificate-authority-data": data(certificates / "ca.crt")}, "https://h").ssl_context
    assert [mode for mode, _ in left] == [0o600] * (kind != "files")
    assert not any(os.path.exists(path) for _, path in left)


@pytest.mark.parametrize(
    ("user", "cluster", "message"),
    [
        ({"client-certificate-data": "QQ=="}, {}, "client-key-data or client-key must be specified"),
        ({"client-certificate-data": "QQ==", "client-key-data": "QQ=="}, {}, "unable to use the client certificate"),
        ({"client-certificate-data": "é"}, {}, "client-certificate-data is not base64"),
        ({}, {"certificate-authority": "/nowhere"}, "unable to read certificate-authority /nowhere"),
        ({}, {"certificate-authority": "a\0b"}, "embedded null byte"),
        ({}, {"certificate-authority-data": "QQ=="}, "unable to load root certificates"),
    ],
)
def test_what_cannot_be_used_is_said(user, cluster, message):
    with pytest.raises(GhostError, match=message):
        made(user, cluster, "https://h")


def test_a_token_file_that_is_no_text(tmp_path):
    (tmp_path / "token").write_bytes(b"\xff")
    with pytest.raises(GhostError, match=r"unable to read tokenFile .*: it is not text"):
        made({"tokenFile": str(tmp_path / "token")}).authorization()


def test_where_no_file_can_be_written(certificates, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/nowhere")
    user = {f"client-{name}-data": data(certificates / f"client.{end}") for name, end in CLIENT.items()}
    with pytest.raises(GhostError, match="unable to write to the folder for temporary files, /nowhere") as caught:
        made(user, server="https://h")
    assert "TMPDIR" in caught.value.hint


CLIENT = {"certificate": "crt", "key": "key"}


@pytest.mark.parametrize(("cluster", "loads"), [({}, 1), ({"insecure-skip-tls-verify": True}, 0)])
def test_the_systems_authorities_are_loaded_where_they_are_asked(monkeypatch, cluster, loads):
    loaded = []
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: loaded.append(1))
    credentials.trust(cluster)
    assert len(loaded) == loads


def test_trust_is_as_strict_as_gos(certificates):
    context = credentials.trust({"certificate-authority": str(certificates / "ca.crt")})
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert not context.verify_flags & getattr(ssl, "VERIFY_X509_STRICT", 0)
    assert credentials.trust({"insecure-skip-tls-verify": True}).verify_mode is ssl.CERT_NONE
