"""kubectl's connection flags, and what each of them does to the kubeconfig's entries. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubectl_ghost.cluster.kubeconfig_files import Kubeconfig
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json

_CREDENTIALS = ("token", "tokenFile", "username", "password", "exec", "auth-provider")


@dataclass(frozen=True)
class Overrides:
    """kubectl's connection flags. None, empty or False means that the flag was not given."""

    kubeconfig: str | None = None
    context: str | None = None
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None
    server: str | None = None
    token: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    as_user: str | None = None
    as_groups: tuple[str, ...] = ()
    as_uid: str | None = None
    as_user_extra: tuple[str, ...] = ()
    request_timeout: float | None = None
    insecure_skip_tls_verify: bool = False
    certificate_authority: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    tls_server_name: str | None = None
    disable_compression: bool = False


def cluster_entry(config: Kubeconfig, context: Json, overrides: Overrides) -> Json:
    """The cluster entry to go by.

    Raises:
        GhostError: it does not exist, or trusts everybody and an authority at once.
    """
    name = overrides.cluster or str(context.get("cluster") or "")
    if name and name not in config.clusters and (overrides.cluster or not overrides.server):
        raise GhostError(f'cluster "{name}" does not exist', "the context names it, or --cluster does")
    cluster = dict(config.clusters.get(name, {}))
    if overrides.server:
        cluster["server"] = overrides.server
    if overrides.server or overrides.tls_server_name:
        cluster["tls-server-name"] = overrides.tls_server_name
    if overrides.insecure_skip_tls_verify or overrides.certificate_authority:
        cluster.pop("certificate-authority-data", None)
        cluster["certificate-authority"] = overrides.certificate_authority
        cluster["insecure-skip-tls-verify"] = overrides.insecure_skip_tls_verify
    if overrides.disable_compression:
        cluster["disable-compression"] = True
    if cluster.get("insecure-skip-tls-verify") and (
        cluster.get("certificate-authority") or cluster.get("certificate-authority-data")
    ):
        raise GhostError("specifying a root certificates file with the insecure flag is not allowed")
    return cluster


def user_entry(config: Kubeconfig, context: Json, overrides: Overrides) -> Json:
    """The user entry to go by.

    Raises:
        GhostError: it does not exist, or the flags contradict each other.
    """
    name = overrides.user or str(context.get("user") or "")
    if overrides.user and name not in config.users:
        raise GhostError(f'auth info "{name}" does not exist', "no user of that name is in the kubeconfig")
    user = dict(config.users.get(name, {}))
    if overrides.token and (overrides.username or overrides.password):
        raise GhostError("more than one authentication method found: --token and --username, only one is allowed")
    if overrides.token or overrides.username or overrides.password:
        user = {key: value for key, value in user.items() if key not in _CREDENTIALS}
        given = {"token": overrides.token, "username": overrides.username, "password": overrides.password}
        user.update({key: value for key, value in given.items() if value})
    for key, path in (("client-certificate", overrides.client_certificate), ("client-key", overrides.client_key)):
        if path:
            user.pop(f"{key}-data", None)
            user[key] = path
    return {**user, **_impersonation(user, overrides)}


def _impersonation(user: Json, overrides: Overrides) -> Json:
    given: Json = {
        "as": overrides.as_user,
        "as-groups": list(overrides.as_groups),
        "as-uid": overrides.as_uid,
        "as-user-extra": _extras(overrides.as_user_extra),
    }
    chosen = {key: value or user.get(key) for key, value in given.items()}
    chosen = {key: value for key, value in chosen.items() if value}
    if chosen and "as" not in chosen:
        raise GhostError("requesting uid, groups or user-extra without impersonating a user", "add --as")
    return chosen


def _extras(pairs: tuple[str, ...]) -> dict[str, list[str]]:
    extras: dict[str, list[str]] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise GhostError(f'--as-user-extra "{pair}" is not of the form key=value')
        extras.setdefault(key, []).append(value)
    return extras
