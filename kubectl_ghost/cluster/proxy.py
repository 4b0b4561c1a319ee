"""Whether a proxy stands between us and the server: Go's rules, since kubectl's users know those. Pure.

| setting                         | kubectl                                   | here                     |
|---------------------------------|-------------------------------------------|--------------------------|
| `proxy-url` of the cluster      | always used, loopback too                 | the same                 |
| HTTPS_PROXY / HTTP_PROXY        | by the server's scheme, either case       | the same                 |
| NO_PROXY                        | names, `.suffix`, addresses, CIDR, ports, `*` | the same             |
| localhost and loopback          | never through a proxy of the environment  | the same                 |
| http proxy                      | CONNECT for https servers                 | CONNECT for every server |
| https and socks5 proxies        | supported                                 | refused with a message   |
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote

from kubectl_ghost.cluster import server_url
from kubectl_ghost.domain.errors import GhostError


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that is asked to CONNECT. `authorization` is a header's value, or empty."""

    host: str
    port: int
    authorization: str = ""


def choose(server: SplitResult, proxy_url: str, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy for this server, or None for a direct connection.

    Raises:
        GhostError: the proxy's URL is none, or the proxy of a kind that is not supported.
    """
    if proxy_url:
        return _parse(proxy_url, "the cluster's proxy-url")
    name = f"{server.scheme}_proxy"
    if environ.get(name.upper()):
        name = name.upper()
    found = environ.get(name) or ""
    if not found or _is_excluded(server, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    return _parse(found, name)


def is_loopback(host: str) -> bool:
    """Whether the host is this machine by its very name: nothing is looked up."""
    return host in {"localhost", "::1"} or host.startswith("127.")


def _parse(url: str, source: str) -> Proxy:
    if "://" not in url:
        url = f"http://{url}"
    parts = server_url.split(url, source)
    if parts.scheme != "http":
        raise GhostError(
            f'proxy URL scheme "{parts.scheme}" is not supported', "only http:// proxies are: they tunnel TLS untouched"
        )
    authorization = ""
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(parts.hostname or "", parts.port or 80, authorization)


def _is_excluded(server: SplitResult, no_proxy: str) -> bool:
    host, port = (server.hostname or "").lower(), str(server.port or "")
    if is_loopback(host):
        return True
    return any(_matches(host, port, entry.strip().lower()) for entry in no_proxy.split(",") if entry.strip())


def _matches(host: str, port: str, entry: str) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return _in_network(host, entry)
    name, colon, wanted = entry.rpartition(":")
    if colon and wanted.isdigit() and ":" not in name:
        if wanted != port:
            return False
        entry = name
    entry = entry.removeprefix("*")
    if entry.startswith("."):
        return host.endswith(entry)
    return host == entry.strip("[]") or host.endswith(f".{entry}")


def _in_network(host: str, network: str) -> bool:
    import ipaddress  # rarely needed, and slow to import

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
