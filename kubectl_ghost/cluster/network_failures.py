"""From an exception of the network to an error of one clear line, with what to do about it. Pure."""

from __future__ import annotations

import socket
from typing import Final

from kubectl_ghost.cluster import errors
from kubectl_ghost.cluster.http_answer import ProtocolError

# OpenSSL's verify codes (x509_vfy.h): stable numbers, unlike the texts.
_EXPIRED: Final = 10
_SELF_SIGNED: Final = (18, 19, 20, 21)
_HOSTNAME: Final = (62, 64)


def from_exception(
    cause: Exception, method: str, path: str, *, host: str, timeout: float | None = None, hint: str | None = None
) -> errors.Unreachable:
    """The error for a request that got no whole answer.

    Args:
        host: `host:port` of the server.
        timeout: what was allowed, for the message of a timeout.
        hint: said when the server cannot be found or refuses, for example that no kubeconfig was found.
    """
    kind: type[errors.Unreachable] = errors.Unreachable
    if isinstance(cause, TimeoutError):
        kind = errors.Timeout
    message, own_hint = _words(cause, method, host, timeout)
    return kind(message, hint or own_hint, method=method, path=path)


def _words(cause: Exception, method: str, host: str, timeout: float | None) -> tuple[str, str | None]:
    unable = "Unable to connect to the server: "
    if isinstance(cause, ConnectionRefusedError):
        return (
            f"The connection to the server {host} was refused - did you specify the right host or port?",
            "is the cluster running? `kubectl config get-contexts` shows which server the context names",
        )
    if isinstance(cause, socket.gaierror):
        return (
            f"{unable}lookup {host.rpartition(':')[0]}: no such host",
            "check the server of this context (`kubectl config view --minify`) and the network or VPN it needs",
        )
    if isinstance(cause, TimeoutError):
        allowed = ""
        if timeout is not None:
            allowed = f" within {timeout:g}s"
        return f"{unable}no answer from {host}{allowed}", "check the network, or raise --request-timeout"
    tls = _tls_words(cause, host)
    if tls:
        return unable + tls[0], tls[1]
    if isinstance(cause, (ConnectionError, ProtocolError)):
        detail = str(cause).strip() or type(cause).__name__
        if method == "POST":
            return f"{unable}lost the connection to {host}: {detail}", "whether it was done is not known: run it again"
        return f"{unable}lost the connection to {host}: {detail}", "run the command again"
    return f"{unable}{host}: {getattr(cause, 'strerror', None) or cause}", None


def _tls_words(cause: Exception, host: str) -> tuple[str, str | None] | None:
    import ssl  # loaded already where TLS is spoken

    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {cause.verify_message}", _verify_hint(cause.verify_code)
    if not isinstance(cause, ssl.SSLError):
        return None
    if cause.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST"}:
        return f"{host} does not speak TLS", "does the server's URL begin with http:// rather than https://?"
    if "ALERT" in (cause.reason or "") and "CERT" in (cause.reason or ""):
        return f"tls: {host} does not accept the client certificate", "it may have expired: renew the context's user"
    return f"tls: {cause.reason or cause}", None


def _verify_hint(code: int) -> str | None:
    if code in _SELF_SIGNED:
        return "it is not signed by the context's certificate authority: has the cluster been made anew?"
    if code in _HOSTNAME:
        return "the certificate is for another name: give it with --tls-server-name"
    if code == _EXPIRED:
        return "the server's certificate has expired: renew it, or check this machine's clock"
    return None
