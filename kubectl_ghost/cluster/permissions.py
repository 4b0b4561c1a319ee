"""Which permission a refused request lacked, and the kubectl command that would grant it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# The wording of the API server's RBAC refusals, stable since 1.12 (apiserver/pkg/endpoints/handlers/responsewriters).
_CANNOT: Final = re.compile(
    r'(?:User "(?P<user>[^"]*)" )?cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_PATH: Final = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[^/?]+)(?:/(?P<name>[^/?]+))?(?:/(?P<subresource>[^?]+))?"
)
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


@dataclass(frozen=True, slots=True)
class Permission:
    """One RBAC permission. An empty namespace means the whole cluster."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    user: str = ""

    def hint(self) -> str:
        """The missing permission in words, and how an administrator would grant it."""
        where = "cluster scope"
        if self.namespace:
            where = f'namespace "{self.namespace}"'
        group = ""
        if self.group:
            group = f' in group "{self.group}"'
        return f'needs verb "{self.verb}" on resource "{self.resource}"{group} ({where}): {self._grant()}'

    def _grant(self) -> str:
        role, scope = "clusterrole", ""
        if self.namespace:
            role, scope = "role", f" -n {self.namespace}"
        name = f"ghost-{self.verb}-{self.resource.replace('/', '-')}"
        target = self.resource
        if self.group:
            plural, _, subresource = self.resource.partition("/")
            target = f"{plural}.{self.group}"
            if subresource:
                target += f"/{subresource}"
        return (
            f"kubectl create {role} {name}{scope} --verb={self.verb} --resource={target} && "
            f"kubectl create {role}binding {name}{scope} --{role}={name} {self._subject()}"
        )

    def _subject(self) -> str:
        account = self.user.removeprefix("system:serviceaccount:")
        if account != self.user:
            return f"--serviceaccount={account}"
        return f"--user={self.user or 'YOU'}"


def missing(message: str, method: str, path: str) -> Permission | None:
    """The permission that a 403 speaks of: from its message, else from the request.

    None when the message gives another reason (a quota, an admission policy): a role would not help then.
    """
    found = _CANNOT.search(message)
    if found:
        return Permission(
            found["verb"], found["resource"], found["group"], found["namespace"] or "", found["user"] or ""
        )
    if "is forbidden:" in message:
        return None
    return _from_request(method, path)


def _from_request(method: str, path: str) -> Permission | None:
    found = _PATH.search(path)
    if not found:
        return None
    verb = _VERBS.get(method, method.lower())
    if found["name"] is None:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    resource = found["resource"]
    if found["subresource"]:
        resource += f"/{found['subresource']}"
    return Permission(verb, resource, found["group"] or "", found["namespace"] or "")
