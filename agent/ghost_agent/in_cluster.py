"""The agent's own way to the API server from a pod: its service account's token and CA, the standard library's HTTP."""

from __future__ import annotations

import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urlencode

from ghost_agent.fleet import CLAIMS, NODES, PODS
from ghost_agent.watcher import Expired
from kubectl_ghost import __version__
from kubectl_ghost.domain import guard
from kubectl_ghost.domain.agent_objects import SELECTORS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.holders import record_patch
from kubectl_ghost.domain.keys import Json

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod has its service account's token and CA."""
_CHUNK = 500
_TIMEOUT_SECONDS = 30.0
_SILENT_SECONDS = 90.0
"""Without a word of a watch for so long the connection is dead: the server ends it after WATCH_SECONDS."""
_ROOTS = {NODES: "/api/v1", PODS: "/api/v1", CLAIMS: "/apis/resource.k8s.io/v1"}


class InCluster:
    """Reads as the pod's service account, and writes one annotation of pods on simulated nodes."""

    def __init__(self, account: Path = ACCOUNT) -> None:
        """Find the API server.

        Args:
            account: the folder with `token` and `ca.crt`.

        Raises:
            GhostError: this is no pod, or it has no service account.
        """
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        self._token, authority = account / "token", account / "ca.crt"
        if not host or not authority.exists():
            raise GhostError(
                "this is not a pod with a service account", "Outside a pod use: kubectl ghost metrics serve"
            )
        self._server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._context = ssl.create_default_context(cafile=str(authority))

    def list(self, collection: str, keep: Callable[[Json], Json]) -> tuple[list[Json], str]:
        """See ClusterReader."""
        found: list[Json] = []
        query: dict[str, str | int] = {**SELECTORS[collection], "limit": _CHUNK}
        while True:
            try:
                answer = self._json("GET", f"{_ROOTS[collection]}/{collection}", query)
            except _Absent:
                # An API server without DRA has no claims.
                return [], ""
            except Expired:
                # The pages so far are of a state that the server has forgotten; all at once cannot expire.
                found, query = [], dict(SELECTORS[collection])
                continue
            found += map(keep, answer.get("items") or ())
            metadata = answer.get("metadata") or {}
            if not metadata.get("continue"):
                return found, str(metadata.get("resourceVersion") or "")
            query["continue"] = metadata["continue"]

    def watch(self, collection: str, version: str, seconds: float) -> Iterator[tuple[str, Json]]:
        """See ClusterReader."""
        query: dict[str, str | int] = {
            **SELECTORS[collection],
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": round(seconds),
        }
        with self._open("GET", f"{_ROOTS[collection]}/{collection}", query, timeout=_SILENT_SECONDS) as answer:
            yield "BOOKMARK", {"metadata": {"resourceVersion": version}}
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise _error(int(status.get("code") or 0), str(status.get("message") or "the watch failed"))
                yield event["type"], event["object"]

    def record(self, pod: Json, node: Json, devices: tuple[str, ...]) -> None:
        """See ClusterReader; a pod that changes or ends just now comes again."""
        patch = record_patch(devices)
        guard.permit("Pod", "patch", live=pod, body=patch, node=node)
        metadata = pod["metadata"]
        patch["metadata"] |= {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        # A pod that changes or ends just now comes again.
        with suppress(_Absent, _Changed):
            self._json("PATCH", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", {}, patch)

    def _json(self, method: str, path: str, query: Mapping[str, str | int], body: Json | None = None) -> Json:
        with self._open(method, path, query, body) as answer:
            found: Json = json.load(answer)
            return found

    @contextmanager
    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int],
        body: Json | None = None,
        timeout: float = _TIMEOUT_SECONDS,
    ) -> Iterator[HTTPResponse]:
        """Ask, and let the answer be read; whatever goes wrong with either is a GhostError."""
        request = urllib.request.Request(
            f"{self._server}{path}?{urlencode(query)}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                # Read anew each time: the kubelet replaces the token before it expires.
                "Authorization": f"Bearer {self._token.read_text(encoding='utf-8').strip()}",
                "Accept": "application/json",
                "User-Agent": f"kubectl-ghost/{__version__}",
                **({} if body is None else {"Content-Type": "application/merge-patch+json"}),
            },
        )
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=timeout) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            raise _error(error.code, f"{method} {path}: {_reason(error)}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise GhostError(f"{method} {path}: {error}") from error


class _Absent(GhostError):
    """The API server does not know the type, or the object is gone."""


class _Changed(GhostError):
    """The object is no longer as it was read."""


def _error(code: int, message: str) -> GhostError:
    kind = {404: _Absent, 409: _Changed, 410: Expired}.get(code, GhostError)
    return kind(message)


def _reason(error: urllib.error.HTTPError) -> str:
    """What the API server says in its Status."""
    try:
        return str(json.load(error)["message"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"{error.code} {error.reason}"
