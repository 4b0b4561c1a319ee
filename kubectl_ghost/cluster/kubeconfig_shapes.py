"""What a kubeconfig's entries must look like, so that the rest of the room can rely on it. Pure.

Numbers where text belongs are let pass, for a password may look like one; kubectl is stricter there. A switch must be
`true` or `false`, as for kubectl: the text "false" would count as true. Unknown keys are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubectl_ghost.domain.errors import GhostError

Shape = Callable[[Any], str]
"""Gives what a value is not (`is not a map`), with the key in front where it lies deeper; empty when it fits."""


def text(value: Any) -> str:
    """A scalar."""
    if value is None or isinstance(value, (dict, list, tuple, set)):
        return " is not text"
    return ""


def switch(value: Any) -> str:
    """true or false."""
    if not isinstance(value, bool):
        return " is neither true nor false"
    return ""


def list_of(inner: Shape) -> Shape:
    """A list whose every element has a shape."""

    def check(value: Any) -> str:
        if not isinstance(value, list):
            return " is not a list"
        return next((f"[{number}]{wrong}" for number, entry in enumerate(value) if (wrong := inner(entry))), "")

    return check


def map_of(inner: Shape) -> Shape:
    """A map whose every value has a shape, or is null."""

    def check(value: Any) -> str:
        if not isinstance(value, dict):
            return " is not a map"
        return _first_wrong(value, dict.fromkeys(value, inner))

    return check


def record(**fields: Shape) -> Shape:
    """A map whose known keys, where present and not null, have shapes. Underscores stand for hyphens."""
    shapes = {name.replace("_", "-"): shape for name, shape in fields.items()}

    def check(value: Any) -> str:
        if not isinstance(value, dict):
            return " is not a map"
        return _first_wrong(value, shapes)

    return check


def _first_wrong(value: dict[Any, Any], shapes: dict[Any, Shape]) -> str:
    for key, shape in shapes.items():
        found = value.get(key)
        if found is None:
            continue
        wrong = shape(found)
        if wrong:
            return f".{key}{wrong}"
    return ""


CLUSTER: Final = record(
    server=text,
    certificate_authority=text,
    certificate_authority_data=text,
    tls_server_name=text,
    proxy_url=text,
    insecure_skip_tls_verify=switch,
    disable_compression=switch,
)
USER: Final = record(
    **dict.fromkeys(("client_certificate", "client_certificate_data", "client_key", "client_key_data"), text),
    **dict.fromkeys(("token", "tokenFile", "username", "password", "as", "as_uid"), text),
    as_groups=list_of(text),
    as_user_extra=map_of(list_of(text)),
    auth_provider=record(name=text, config=map_of(text)),
    exec=record(
        **dict.fromkeys(("apiVersion", "command", "installHint", "interactiveMode"), text),
        args=list_of(text),
        env=list_of(record(name=text, value=text)),
        provideClusterInfo=switch,
    ),
)
CONTEXT: Final = record(cluster=text, user=text, namespace=text)


def check(value: Any, shape: Shape, name: str, where: str) -> None:
    """Refuse a value that does not have a shape.

    Args:
        name: what it is (`user "joe"`).
        where: the file, as a sentence's beginning.

    Raises:
        GhostError: naming the file, the entry and the key.
    """
    wrong = shape(value)
    if wrong.startswith("."):
        # From `.exec.args is ...` and `user "joe"` to `user "joe": exec.args is ...`.
        wrong = f": {wrong[1:]}"
    if wrong:
        raise GhostError(f"{where}: {name}{wrong}", "correct the file; `kubectl config set --help` tells how")
