"""From kubeconfig files, flags and environment to the one server to talk to, by kubectl's rules.

| case                              | kubectl                                            | here                       |
|-----------------------------------|----------------------------------------------------|----------------------------|
| `--kubeconfig FILE`               | that file only; missing is an error                | the same                   |
| `KUBECONFIG=a:b`                  | first file to name a thing wins; missing: ignored  | the same                   |
| neither                           | `~/.kube/config`                                   | the same                   |
| relative paths in a file          | relative to that file                              | the same                   |
| relative paths in flags           | relative to the working directory                  | the same                   |
| `*-data` beside a file            | data wins                                          | the same                   |
| `--server`                        | also drops the file's `tls-server-name`            | the same                   |
| `--certificate-authority`,        | each replaces all of the file's trust settings     | the same                   |
| `--insecure-skip-tls-verify`      |                                                    |                            |
| `--token`, `--username`           | stand beside what the user entry has               | replace its credentials    |
| the context's cluster is missing  | localhost:8080                                     | an error that names it     |
| a user without credentials        | asks for a name and a password                     | goes on anonymously        |
| no configuration, in a pod        | the pod's service account                          | the same                   |
| no configuration elsewhere        | localhost:8080                                     | the same, with a hint      |
| preferences, extensions           | ignored                                            | the same                   |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from kubectl_ghost.cluster import kubeconfig_files, server_url
from kubectl_ghost.cluster.kubeconfig_files import Kubeconfig
from kubectl_ghost.cluster.overrides import Overrides, cluster_entry, user_entry
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json

DEFAULT_SERVER = "http://localhost:8080"
SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
__all__ = ["Overrides", "Target", "load"]


@dataclass(frozen=True)
class Target:
    """One server and who we are to it.

    Attributes:
        context: the context's name, empty when none is in use.
        server: its URL, with a scheme and without a final slash.
        cluster: the kubeconfig's cluster entry after the flags: trust settings, proxy.
        user: the kubeconfig's user entry after the flags: credentials, impersonation.
        configured: False when nothing named a server, so that `server` is kubectl's last resort.
    """

    context: str
    server: str
    namespace: str
    cluster: Json = field(default_factory=dict, repr=False)
    user: Json = field(default_factory=dict, repr=False)
    request_timeout: float | None = None
    configured: bool = True

    @property
    def proxy_url(self) -> str:
        """The proxy that the cluster entry names, or empty."""
        return str(self.cluster.get("proxy-url") or "")

    @property
    def disable_compression(self) -> bool:
        """Whether answers are to come uncompressed."""
        return bool(self.cluster.get("disable-compression"))


def load(overrides: Overrides, environ: Mapping[str, str]) -> Target:
    """Find the server to talk to. Nothing is connected to and no credential plugin runs.

    Raises:
        GhostError: a file cannot be read or understood, a context, cluster or user that was named does not exist, or
            the server's URL is none.
    """
    config = kubeconfig_files.read(overrides.kubeconfig, environ)
    if config.is_empty and overrides.server is None and overrides.context is None:
        target = _in_cluster(overrides, environ)
        if target is not None:
            return target
    name = overrides.context or config.current_context
    context = _context(config, name)
    cluster = cluster_entry(config, context, overrides)
    user = user_entry(config, context, overrides)
    server = str(cluster.get("server") or "")
    source = f'cluster "{overrides.cluster or context.get("cluster")}" of the kubeconfig'
    if overrides.server:
        source = "--server"
    return Target(
        context=name,
        server=_url(server or DEFAULT_SERVER, cluster, user, source),
        namespace=overrides.namespace or str(context.get("namespace") or "") or "default",
        cluster=cluster,
        user=user,
        request_timeout=overrides.request_timeout or None,
        configured=bool(server),
    )


def _context(config: Kubeconfig, name: str) -> Json:
    if not name:
        return {}
    if name not in config.contexts:
        raise GhostError(f'context "{name}" does not exist', "`kubectl config get-contexts` lists those that do")
    return config.contexts[name]


def _url(server: str, cluster: Json, user: Json, source: str) -> str:
    """A server without a scheme speaks TLS exactly when something about TLS is configured, as client-go has it."""
    if "://" not in server:
        secure = any(
            (
                cluster.get("insecure-skip-tls-verify"),
                cluster.get("certificate-authority"),
                cluster.get("certificate-authority-data"),
                user.get("client-certificate"),
                user.get("client-certificate-data"),
            )
        )
        scheme = "http"
        if secure:
            scheme = "https"
        server = f"{scheme}://{server}"
    if not server.startswith(("http://", "https://")):
        raise GhostError(f'server URL "{server}" is neither http:// nor https://')
    server_url.split(server, source)
    return server.rstrip("/")


def _in_cluster(overrides: Overrides, environ: Mapping[str, str]) -> Target | None:
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    token = os.path.join(SERVICE_ACCOUNT_FOLDER, "token")
    if not host or not port or not os.path.isfile(token):
        return None
    if ":" in host:
        host = f"[{host}]"
    inside = Kubeconfig(
        clusters={
            "pod": {
                "server": f"https://{host}:{port}",
                "certificate-authority": os.path.join(SERVICE_ACCOUNT_FOLDER, "ca.crt"),
            }
        },
        users={"pod": {"tokenFile": token}},
    )
    context = {"cluster": "pod", "user": "pod"}
    cluster = cluster_entry(inside, context, overrides)
    return Target(
        context="",
        server=str(cluster["server"]),
        namespace=overrides.namespace or _pod_namespace(),
        cluster=cluster,
        user=user_entry(inside, context, overrides),
        request_timeout=overrides.request_timeout or None,
    )


def _pod_namespace() -> str:
    try:
        with open(os.path.join(SERVICE_ACCOUNT_FOLDER, "namespace"), encoding="utf-8") as file:
            return file.read().strip() or "default"
    except OSError:
        return "default"
