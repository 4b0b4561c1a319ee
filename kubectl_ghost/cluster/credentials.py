"""From a kubeconfig's entries to what goes over the wire: a TLS context and headers.

Plain credentials (certificates, tokens, token files, passwords) are dealt with here; for users whose credentials a
program or an identity provider hands out, `credential_plugins` is asked, and only then imported.
"""

from __future__ import annotations

import base64
import os
import threading
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from kubectl_ghost.cluster.kubeconfig import Target
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json

if TYPE_CHECKING:
    import ssl

    from kubectl_ghost.cluster.credential_plugins import Issued

_TOKEN_FILE_SECONDS: Final = 60.0
"""How long a token file's content is believed, as in client-go: a pod's token is replaced while the pod runs."""
_HEADER_CHARACTERS: Final = "!#$&'*+-.^_`|~"


class Credentials:
    """Who we are to one server. Safe to use from several threads.

    Raises:
        GhostError: a file cannot be read, a certificate not be understood, or a credential plugin failed.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._token = ""
        self._token_read = 0.0
        self._issued: Issued | None = None
        if _needs_plugin(target.user):
            self._issued = _ask_plugin(target)
        self.headers: Final = impersonation_headers(target.user)
        self.ssl_context: ssl.SSLContext | None = None
        if target.server.startswith("https://"):
            self.ssl_context = self._new_context()

    def authorization(self) -> str:
        """The value of the Authorization header, empty when there is none."""
        user = self._target.user
        if self._issued is not None:
            return self._issued.authorization
        if user.get("tokenFile"):
            return f"Bearer {self._file_token(str(user['tokenFile']))}"
        if user.get("token"):
            return f"Bearer {str(user['token']).strip()}"
        if user.get("username"):
            pair = f"{user['username']}:{user.get('password', '')}"
            return "Basic " + base64.b64encode(pair.encode()).decode()
        return ""

    def refresh(self, refused: str) -> bool:
        """Get new credentials after a 401.

        Args:
            refused: the Authorization that the server did not accept; another thread may have replaced it since.

        Returns:
            Whether it is worth trying again.
        """
        with self._lock:
            if self._issued is not None and self._issued.authorization == refused:
                self._issued = _ask_plugin(self._target)
                if self._issued.certificate_file and self.ssl_context is not None:
                    self.ssl_context = self._new_context()
                    return True
            self._token_read = 0.0
        return self.authorization() != refused

    def _file_token(self, path: str) -> str:
        now = time.monotonic()
        if not self._token or now - self._token_read > _TOKEN_FILE_SECONDS:
            try:
                self._token = _decoded(_read(path, "tokenFile"), path)
            except GhostError:
                # As in client-go: the inline token, or the last one read, is tried before giving up.
                self._token = self._token or str(self._target.user.get("token") or "")
                if not self._token:
                    raise
            self._token_read = now
        return self._token

    def _new_context(self) -> ssl.SSLContext:
        context = trust(self._target.cluster)
        if self._issued is not None and self._issued.certificate_file:
            _load_pair(context, self._issued.certificate_file, self._issued.key_file)
            return context
        present(context, self._target.user)
        return context


def impersonation_headers(user: Json) -> list[tuple[str, str]]:
    """The `Impersonate-*` headers for a user entry's `as`, `as-groups`, `as-uid` and `as-user-extra`."""
    headers: list[tuple[str, str]] = []
    if user.get("as"):
        headers.append(("Impersonate-User", str(user["as"])))
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", str(user["as-uid"])))
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        name = f"Impersonate-Extra-{quote(str(key), safe=_HEADER_CHARACTERS, errors='surrogateescape')}"
        headers += [(name, str(value)) for value in values or ()]
    return headers


def trust(cluster: Json) -> ssl.SSLContext:
    """A TLS context that believes the servers a cluster entry says to believe, as strictly as Go does.

    Raises:
        GhostError: the certificate authority cannot be read.
    """
    import ssl

    authority = _bytes(cluster, "certificate-authority")
    try:
        # The system's authorities, which take 20 ms to load, only where they are asked about anything.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if authority:
            context.load_verify_locations(cadata=authority.decode())
        elif not cluster.get("insecure-skip-tls-verify"):
            context.load_default_certs()
    except (ssl.SSLError, ValueError) as cause:
        raise GhostError("unable to load root certificates: certificate-authority is not in PEM form") from cause
    # Python 3.13 insists on extensions that many clusters' own authorities lack; Go does not, and takes any certificate
    # of the bundle for an anchor.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def present(context: ssl.SSLContext, user: Json) -> None:
    """Load a user entry's client certificate into a TLS context, if there is one.

    Raises:
        GhostError: it cannot be read, or the key is missing or not this certificate's.
    """
    certificate, key = _bytes(user, "client-certificate"), _bytes(user, "client-key")
    if certificate is None:
        return
    if key is None:
        raise GhostError("client-key-data or client-key must be specified to use a client certificate")
    if not user.get("client-certificate-data") and not user.get("client-key-data"):
        _load_pair(context, str(user["client-certificate"]), str(user["client-key"]))
        return
    path = _private_file(certificate + b"\n" + key)
    try:
        _load_pair(context, path, path)
    finally:
        os.unlink(path)


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    try:
        # The empty password keeps OpenSSL from asking for one on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as cause:
        raise GhostError(f"unable to use the client certificate: {getattr(cause, 'reason', None) or cause}") from cause


def _private_file(content: bytes) -> str:
    """ssl reads certificates from files alone. The file is there for as long as that takes and for its owner only."""
    folder = os.environ.get("TMPDIR") or "/tmp"
    # What tempfile.mkstemp does; its import costs more than everything else about a certificate.
    path = os.path.join(folder, f"kubectl-ghost-{os.urandom(16).hex()}")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except (OSError, ValueError) as cause:
        raise GhostError(
            f"unable to write to the folder for temporary files, {folder}: {getattr(cause, 'strerror', cause)}",
            "set TMPDIR to a folder that can be written to: OpenSSL takes certificates from files alone",
        ) from cause
    return path


def _bytes(entry: Json, key: str) -> bytes | None:
    """The content of `<key>-data`, else of the file that `<key>` names."""
    data = entry.get(f"{key}-data")
    if data:
        try:
            return base64.b64decode(str(data))
        except ValueError as cause:
            raise GhostError(f"{key}-data is not base64") from cause
    if entry.get(key):
        return _read(str(entry[key]), key)
    return None


def _read(path: str, what: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as cause:
        raise GhostError(f"unable to read {what} {path}: {(cause.strerror or '').lower()}") from cause
    except ValueError as cause:
        raise GhostError(f"unable to read {what} {path!r}: {cause}") from cause


def _decoded(token: bytes, path: str) -> str:
    try:
        return token.decode().strip()
    except UnicodeError as cause:
        raise GhostError(f"unable to read tokenFile {path}: it is not text") from cause


def _needs_plugin(user: Json) -> bool:
    return bool(user.get("exec") or user.get("auth-provider")) and not (user.get("token") or user.get("tokenFile"))


def _ask_plugin(target: Target) -> Issued:
    from kubectl_ghost.cluster import credential_plugins

    return credential_plugins.issue(target.server, target.cluster, target.user)
