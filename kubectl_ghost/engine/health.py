"""Asks the components of a cluster how they are, over the endpoints that they have for it."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass

from kubectl_ghost.engine import kwokctl, processes
from kubectl_ghost.engine.folders import ClusterFolder
from kubectl_ghost.engine.kwokctl import Cluster

_ENDPOINTS = {
    "etcd": "http://127.0.0.1:{etcdPort}/health",
    "kube-apiserver": "https://127.0.0.1:{kubeApiserverPort}/readyz",
    "kube-controller-manager": "https://127.0.0.1:{kubeControllerManagerPort}/healthz",
    "kube-scheduler": "https://127.0.0.1:{kubeSchedulerPort}/healthz",
    "kwok-controller": "http://127.0.0.1:{kwokControllerPort}/healthz",
}
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Component:
    """One component as it is now."""

    name: str
    pid: int | None
    fault: str
    """Why it is not well; empty if it is."""


def components(cluster: Cluster) -> list[Component]:
    """Every component of a cluster whose components are processes of this machine."""
    alive = processes.running(cluster.folder)
    return [_component(cluster, name, alive.get(name)) for name in processes.COMPONENTS]


def faults(cluster: Cluster) -> list[Component]:
    """What keeps the cluster from being ready, the component that others depend on first; nothing if it is."""
    if cluster.runs_here:
        unwell = [component for component in components(cluster) if component.fault]
        if unwell:
            return unwell
    elif kwokctl.kubectl(cluster, "get", "--raw", "/readyz").stdout != "ok":
        return [Component("kube-apiserver", None, "it is not ready")]
    # Without it the API server refuses every pod of the namespace.
    account = kwokctl.kubectl(cluster, "get", "serviceaccount", "default", "--namespace", "default", "-o", "name")
    if account.returncode != 0:
        return [Component("kube-controller-manager", None, "it has not yet made the default service account")]
    return []


def _component(cluster: Cluster, name: str, pid: int | None) -> Component:
    if pid is None:
        return Component(name, None, "it is not running")
    return Component(name, pid, _fault_at(_ENDPOINTS[name].format(**cluster.record.ports), cluster.folder))


def _fault_at(url: str, folder: ClusterFolder) -> str:
    # Proxies are for elsewhere: an http_proxy in the environment must not be asked for the loopback address.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    try:
        if url.startswith("https"):
            handlers.append(urllib.request.HTTPSHandler(context=_as_administrator(folder)))
        with urllib.request.build_opener(*handlers).open(url, timeout=_SECONDS) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        return f"{url} answers {error.code}"
    except (OSError, ssl.SSLError) as error:
        return f"{url} does not answer: {getattr(error, 'reason', error)}"
    return ""


def _as_administrator(folder: ClusterFolder) -> ssl.SSLContext:
    """The API server tells nobody else. Controller manager and scheduler have certificates that nobody has signed."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    pki = folder.components / "pki"
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return context
