"""The version table: which Kubernetes, etcd and kwok make one control plane, and how each binary is built.

The versions live in `data/controlplane/versions.json` beside the module files that pin them, so that another Kubernetes
minor is a folder and an entry there, and no change here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.keys import Json


@dataclass(frozen=True, slots=True)
class Binary:
    """One program of the set: where its source is, and what it must say when asked for its version."""

    name: str
    package: str
    folder: str
    """Folder of the packaged go.mod and go.sum that pin its source."""
    version: str
    link_flags: str
    version_arguments: tuple[str, ...]
    seconds: int
    """How long a build from nothing takes on two cores; told to the user, never waited for."""


@dataclass(frozen=True, slots=True)
class VersionSet:
    """The versions that make one control plane."""

    minor: str
    kubernetes: str
    etcd: str
    kwok: str
    binaries: tuple[Binary, ...]

    @property
    def key(self) -> str:
        """Names the set in the cache; differs as soon as any of its versions does."""
        return f"kubernetes-{self.kubernetes}_etcd-{self.etcd}_kwok-{self.kwok}"


def controlplane_data() -> Traversable:
    """The packaged folder of module files; it may lie in a read-only place or an archive."""
    return files("kubectl_ghost.data") / "controlplane"


@cache
def _table() -> Json:
    table: Json = json.loads((controlplane_data() / "versions.json").read_text(encoding="utf-8"))
    return table


def known_minors() -> tuple[str, ...]:
    """Every Kubernetes minor that the package can build, the default first."""
    default = str(_table()["default"])
    return (default, *(minor for minor in _table()["versions"] if minor != default))


def version_set(minor: str | None = None) -> VersionSet:
    """The set of a Kubernetes minor ("1.36", "v1.36" or a full version of it); the default without an argument."""
    table = _table()
    wanted = (minor or known_minors()[0]).removeprefix("v")
    chosen = ".".join(wanted.split(".")[:2])
    projects: Mapping[str, Mapping[str, str]] | None = table["versions"].get(chosen)
    if projects is None or wanted not in (chosen, projects["kubernetes"]["version"]):
        raise InputError(f"no control plane of version {minor!r}", f"known versions: {', '.join(known_minors())}")
    versions = {project: entry["version"] for project, entry in projects.items()}
    return VersionSet(
        minor=chosen,
        **versions,
        binaries=tuple(_binary(entry, projects[entry["project"]]) for entry in table["binaries"]),
    )


def _binary(entry: Json, pinned: Mapping[str, str]) -> Binary:
    return Binary(
        name=entry["name"],
        package=entry["package"],
        folder=pinned["folder"],
        version=pinned["version"],
        link_flags=_link_flags(_table()["stamps"][entry["project"]], pinned["version"]),
        version_arguments=tuple(entry["prints_version"]),
        seconds=entry["seconds"],
    )


def _link_flags(stamps: Mapping[str, str], version: str) -> str:
    """Flags for the Go linker: no symbols, and the version that a build from modules would otherwise not know."""
    major, minor, *_ = version.split(".")
    stamped = [
        f"-X {variable}={value.format(version=version, major=major, minor=minor)}" for variable, value in stamps.items()
    ]
    return " ".join(["-s", "-w", *stamped])
