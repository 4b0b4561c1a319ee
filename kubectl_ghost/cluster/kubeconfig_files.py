"""The kubeconfig files, read and merged into one value, with every path in them made independent of where it stood."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubectl_ghost.cluster import kubeconfig_shapes as shapes
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json

_CLUSTER_PATHS = ("certificate-authority",)
_NAMED = shapes.list_of(shapes.record(name=shapes.text))
_USER_PATHS = ("client-certificate", "client-key", "tokenFile")


@dataclass(slots=True)
class Kubeconfig:
    """What all files together say: entries by name, the first file that has a name winning."""

    clusters: dict[str, Json] = field(default_factory=dict)
    users: dict[str, Json] = field(default_factory=dict)
    contexts: dict[str, Json] = field(default_factory=dict)
    current_context: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to connect by, so that kubectl would look for a service account."""
        return not (self.clusters or self.users or self.contexts or self.current_context)


def read(explicit: str | None, environ: Mapping[str, str]) -> Kubeconfig:
    """Read and merge the files that kubectl would.

    Args:
        explicit: the file of `--kubeconfig`, which then is the only one and must exist.

    Raises:
        GhostError: that file does not exist, or a file cannot be read or understood.
    """
    merged = Kubeconfig()
    for path in _paths(explicit, environ):
        document = _parse(path, required=explicit is not None)
        _add(merged, document, os.path.dirname(os.path.abspath(path)), path)
    return merged


def _paths(explicit: str | None, environ: Mapping[str, str]) -> list[str]:
    if explicit is not None:
        return [explicit]
    listed = environ.get("KUBECONFIG", "")
    if listed:
        return [path for path in listed.split(os.pathsep) if path]
    home = environ.get("HOME") or os.path.expanduser("~")
    return [os.path.join(home, ".kube", "config")]


def _parse(path: str, *, required: bool) -> Json:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError as cause:
        if required:
            raise GhostError(f"stat {path}: no such file or directory") from cause
        return {}
    except OSError as cause:
        detail = (cause.strerror or "").lower()
        raise GhostError(f'error loading config file "{path}": open {path}: {detail}') from cause
    except ValueError as cause:
        raise GhostError(f"the path of the kubeconfig cannot be used: {cause}") from cause
    document = _value(content, path)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise GhostError(f'error loading config file "{path}": not a kubeconfig (kind: Config)')
    return document


def _value(content: bytes, path: str) -> Any:
    import yaml

    try:
        return yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except Exception as cause:
        # Not YAMLError alone: PyYAML lets whatever its constructors meet go by, ValueError for 2024-13-45, KeyError
        # for `!!bool x`.
        hint = None
        if isinstance(cause, ValueError):
            hint = "a value that looks like a date or a number and is none needs quotes"
        raise GhostError(f'error loading config file "{path}": yaml: {" ".join(str(cause).split())}', hint) from cause


def _add(merged: Kubeconfig, document: Json, folder: str, path: str) -> None:
    where = f'error loading config file "{path}"'
    for name, cluster in _entries(document, "cluster", shapes.CLUSTER, where):
        merged.clusters.setdefault(name, _absolute(cluster, _CLUSTER_PATHS, folder))
    for name, user in _entries(document, "user", shapes.USER, where):
        merged.users.setdefault(name, _absolute_user(user, folder))
    for name, context in _entries(document, "context", shapes.CONTEXT, where):
        merged.contexts.setdefault(name, context)
    current = document.get("current-context") or ""
    shapes.check(current, shapes.text, "current-context", where)
    merged.current_context = merged.current_context or str(current)


def _entries(document: Json, kind: str, shape: shapes.Shape, where: str) -> list[tuple[str, Json]]:
    listed = document.get(f"{kind}s") or []
    shapes.check(listed, _NAMED, f"{kind}s", where)
    found: list[tuple[str, Json]] = []
    for number, item in enumerate(listed):
        if item.get("name") is None:
            raise GhostError(f"{where}: {kind}s[{number}] has no name")
        name, entry = str(item["name"]), item.get(kind) or {}
        shapes.check(entry, shape, f'{kind} "{name}"', where)
        found.append((name, dict(entry)))
    return found


def _absolute(entry: Json, keys: tuple[str, ...], folder: str) -> Json:
    return {key: os.path.join(folder, str(value)) if key in keys and value else value for key, value in entry.items()}


def _absolute_user(user: Json, folder: str) -> Json:
    user = _absolute(user, _USER_PATHS, folder)
    plugin = user.get("exec")
    # A command without a slash is looked up in PATH, as execve's callers do.
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command", "")):
        user["exec"] = _absolute(plugin, ("command",), folder)
    return user
