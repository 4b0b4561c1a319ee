"""The object types that the tool speaks of: where they live in the API and what kubectl calls them.

Written down rather than discovered: discovery costs a cold command more round trips than its answer needs. Whether a
server has one of them is `Reader.served`'s question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from kubectl_ghost.domain.errors import InputError


@dataclass(frozen=True, slots=True)
class Resource:
    """One type of object.

    Attributes:
        group: the API group, empty for the core one.
        plural: the name in paths (`nodes`).
        kind: the name in objects (`Node`).
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """What stands in an object's `apiVersion`."""
        if not self.group:
            return self.version
        return f"{self.group}/{self.version}"

    @property
    def title(self) -> str:
        """kubectl's name of the type in messages: `node`, `resourceslice.resource.k8s.io`."""
        if not self.group:
            return self.kind.lower()
        return f"{self.kind.lower()}.{self.group}"

    @property
    def root(self) -> str:
        """The path of the group and version, where discovery answers."""
        if not self.group:
            return f"/api/{self.version}"
        return f"/apis/{self.group}/{self.version}"

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of one object, or of the collection (over all namespaces when none is given).

        Raises:
            InputError: a name cannot be part of a path.
            ValueError: a namespaced object is asked for by name alone, or a subresource without a name.
        """
        if name is not None:
            _check_segment(name)
        if subresource is not None and name is None:
            raise ValueError(f"{self.plural}/{subresource} needs a name")
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", _quoted(namespace)]
        elif self.namespaced and name is not None:
            raise ValueError(f"{self.plural} are namespaced: {name} needs a namespace")
        parts.append(self.plural)
        if name is not None:
            parts.append(_quoted(name))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


def _check_segment(name: str) -> None:
    """Refuse a name that would lead elsewhere, in kubectl's words: the server decodes what is quoted."""
    if not name:
        raise InputError("resource name may not be empty")
    if name in (".", ".."):
        raise InputError(f"invalid resource name \"{name}\": [may not be '{name}']")
    for character in "/%":
        if character in name:
            raise InputError(f"invalid resource name \"{name}\": [may not contain '{character}']")


def _quoted(name: str) -> str:
    # A name of bytes that are no UTF-8 is sent as it came, for the server to refuse.
    return quote(name, safe="", errors="surrogateescape")


NODES: Final = Resource("", "v1", "nodes", "Node", False)
PODS: Final = Resource("", "v1", "pods", "Pod", True)
RESOURCE_SLICES: Final = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)
RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True)
DEVICE_CLASSES: Final = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
EVENTS: Final = Resource("", "v1", "events", "Event", True)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", False)
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", True)
CLUSTER_ROLES: Final = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False
)
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
