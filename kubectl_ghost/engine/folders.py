"""Where the engine keeps its things: binaries in the user's cache, clusters in the user's state, nothing elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kubectl_ghost.domain.errors import InputError

DEFAULT_CLUSTER = "kubectl-ghost"
_CLUSTER_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Folders:
    """The engine's two roots, by the XDG base directory specification."""

    cache: Path
    state: Path

    @classmethod
    def of_user(cls, environment: Mapping[str, str] = os.environ) -> Folders:
        """The roots of the user whose environment this is."""
        return cls(
            cache=_base(environment, "XDG_CACHE_HOME", ".cache") / "kubectl-ghost",
            state=_base(environment, "XDG_STATE_HOME", ".local/state") / "kubectl-ghost",
        )

    def binaries(self, key: str) -> Path:
        """The folder of a set of binaries that this tool has built."""
        return self.cache / "controlplane" / key

    def cluster(self, name: str) -> ClusterFolder:
        """The folder of a cluster, whether it exists or not."""
        if not _CLUSTER_NAME.fullmatch(name):
            raise InputError(
                f"invalid cluster name {name!r}", "use lower-case letters, digits and '-', at most 40 characters"
            )
        return ClusterFolder(name, self.state / "clusters" / name)

    def clusters(self) -> list[ClusterFolder]:
        """Every cluster that has a record, by name."""
        found = sorted((self.state / "clusters").glob("*/cluster.json"))
        return [ClusterFolder(path.parent.name, path.parent) for path in found]

    def lock(self, subject: str) -> Path:
        """A lock file. It lies outside what it protects, since a lock inside a folder goes when the folder does."""
        return self.state / "locks" / f"{subject}.lock"


@dataclass(frozen=True, slots=True)
class ClusterFolder:
    """Everything of one cluster lies under one root: removing the root removes the cluster."""

    name: str
    root: Path

    @property
    def record(self) -> Path:
        """What the cluster was asked to be and how far it has come."""
        return self.root / "cluster.json"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of this cluster alone."""
        return self.root / "kubeconfig"

    @property
    def kwokctl_config(self) -> Path:
        """The KwokctlConfiguration that the cluster is made from."""
        return self.root / "kwokctl.yaml"

    @property
    def kwokctl_log(self) -> Path:
        """What kwokctl said when it last ran."""
        return self.root / "kwokctl.log"

    @property
    def kwokctl(self) -> Path:
        """The name that kwokctl runs under here; no file."""
        return self.root / "kwokctl"

    @property
    def audit_policy(self) -> Path:
        """The audit policy that the cluster was made with."""
        return self.root / "audit-policy.yaml"

    @property
    def kwok_workdir(self) -> Path:
        """kwokctl's KWOK_WORKDIR. One a cluster: kwokctl never sees another cluster, nor the user's own."""
        return self.root / "kwok"

    @property
    def components(self) -> Path:
        """The folder that kwokctl makes for the cluster and runs its components in."""
        return self.kwok_workdir / "clusters" / self.name

    @property
    def logs(self) -> Path:
        """A log a component, and audit.log."""
        return self.components / "logs"

    def log_of(self, component: str) -> Path:
        """The log of one component."""
        return self.logs / f"{component}.log"


def _base(environment: Mapping[str, str], variable: str, fallback: str) -> Path:
    given = environment.get(variable, "")
    # The specification: a relative path is invalid and is to be ignored.
    if given and Path(given).is_absolute():
        return Path(given)
    return Path(environment.get("HOME") or Path.home()) / fallback
