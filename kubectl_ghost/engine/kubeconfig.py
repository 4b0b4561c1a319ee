"""Merges a cluster's context into another kubeconfig and takes it out again, leaving everything else as it was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.engine.record import write_whole

_LISTS = ("clusters", "contexts", "users")


def users_kubeconfig(own: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """The kubeconfig that kubectl would write to, unless that is the cluster's own, as after evaluating our exports."""
    for entry in environment.get("KUBECONFIG", "").split(os.pathsep):
        if entry and Path(entry).resolve() != own.resolve():
            return Path(entry).resolve()
    return (Path(environment.get("HOME") or Path.home()) / ".kube" / "config").resolve()


def read(path: Path) -> Json:
    """A kubeconfig; an empty one where there is no file."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        content = None
    except yaml.YAMLError as error:
        raise GhostError(f"{path} is no kubeconfig: {error}") from error
    config: dict[str, Any] = content or {"apiVersion": "v1", "kind": "Config", "preferences": {}}
    return config


def merge(own: Path, target: Path) -> str:
    """Put the cluster's entries into `target`, make its context current and return which context was before."""
    entries, config = read(own), read(target)
    before = str(config.get("current-context") or "")
    merged = merged_config(config, entries)
    if merged != config:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(target, merged)
    return before


def unmerge(name: str, target: Path, context_before: str) -> None:
    """Take the entries called `name` out of `target`; a file that is gone is well."""
    if target.exists():
        config = read(target)
        remaining = unmerged_config(config, name, context_before)
        if remaining != config:
            _write(target, remaining)


def merged_config(config: Json, entries: Json) -> Json:
    """`config` with the entries of another, which win over entries of the same name, and that one's current context."""
    result = dict(config)
    for kind in _LISTS:
        added = {entry["name"]: entry for entry in entries.get(kind) or []}
        kept = [entry for entry in config.get(kind) or [] if entry["name"] not in added]
        result[kind] = [*kept, *added.values()]
    result["current-context"] = entries["current-context"]
    return result


def unmerged_config(config: Json, name: str, context_before: str) -> Json:
    """`config` without the entries called `name`; if that was the current context, the one before is again."""
    result = dict(config)
    for kind in _LISTS:
        result[kind] = [entry for entry in config.get(kind) or [] if entry["name"] != name]
    if config.get("current-context") == name:
        known = {context["name"] for context in result["contexts"]}
        result["current-context"] = context_before if context_before in known else ""
    return result


def _write(path: Path, config: Json) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    write_whole(path, yaml.safe_dump(config, sort_keys=False), mode)
