"""Credentials that someone else hands out: exec plugins, OIDC, gcp. The one file that imports `kubernetes`.

The import costs 650 ms and 42 MiB, which is why everything else is done without it; these protocols (refreshing an
OIDC token, speaking ExecCredential) are what the library is made for, and those who use them wait for a program or an
identity provider anyhow. The user's kubeconfig is never written to: a renewed OIDC token is forgotten with the process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json

_SUPPORTED_PROVIDERS: Final = ("gcp", "oidc")
_NAME: Final = "ghost"


@dataclass(frozen=True, slots=True)
class Issued:
    """What a plugin handed out: a header's value, or the files of a client certificate (removed at exit), or both."""

    authorization: str = field(default="", repr=False)
    certificate_file: str = ""
    key_file: str = ""


def issue(server: str, cluster: Json, user: Json) -> Issued:
    """Run the credential plugin of a user entry.

    Raises:
        GhostError: the plugin is missing, failed, is of a kind that is not supported, or handed out nothing.
    """
    _check_provider(user)
    from kubernetes.client import Configuration
    from kubernetes.config import load_kube_config_from_dict

    configuration = Configuration()
    with _complaints() as complaints:
        try:
            load_kube_config_from_dict(  # type: ignore[no-untyped-call]
                _document(server, cluster, user), client_configuration=configuration, persist_config=False
            )
        except Exception as cause:
            # Its own ConfigException is one of many: what a plugin or an identity provider answers is not checked.
            raise _failure(user, str(cause) or type(cause).__name__) from cause
    # The key was renamed in release 35.
    authorization = configuration.api_key.get("BearerToken") or configuration.api_key.get("authorization") or ""
    if not authorization and not configuration.cert_file:
        raise _failure(user, "; ".join(complaints) or "no token and no certificate were handed out")
    return Issued(authorization, configuration.cert_file or "", configuration.key_file or "")


def _check_provider(user: Json) -> None:
    name = (user.get("auth-provider") or {}).get("name")
    if not user.get("exec") and name not in _SUPPORTED_PROVIDERS:
        raise GhostError(
            f'no Auth Provider found for name "{name}"',
            "kubectl has removed it too: use an exec credential plugin such as kubelogin",
        )


def _document(server: str, cluster: Json, user: Json) -> Json:
    """A kubeconfig of this one user. Its certificate settings stay out: only what the plugin issues is wanted."""
    entry = {key: user[key] for key in ("exec", "auth-provider") if user.get(key)}
    place = {key: value for key, value in cluster.items() if value is not None}
    return {
        "current-context": _NAME,
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "clusters": [{"name": _NAME, "cluster": {**place, "server": server}}],
        "users": [{"name": _NAME, "user": entry}],
    }


def _failure(user: Json, detail: str) -> GhostError:
    plugin = user.get("exec") or {}
    command = str(plugin.get("command", ""))
    if "No such file or directory" in detail and command in detail:
        detail = f"exec: executable {command} not found"
    return GhostError(f"getting credentials: {detail}", plugin.get("installHint"))


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """Collect what the library logs: it swallows a plugin's failure and writes it to the root logger instead."""
    heard: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    collector = Collector(logging.ERROR)
    root = logging.getLogger()
    root.addHandler(collector)
    try:
        yield heard
    finally:
        root.removeHandler(collector)
