"""The user's own kubectl, for what this tool does not do itself."""

from __future__ import annotations

import shutil

import click

from kubectl_ghost.conventions.global_flags import values
from kubectl_ghost.domain.errors import GhostError

_RENAMED = {"as_user": "as", "as_groups": "as-group"}
_NOT_PASSED_ON = ("namespace", "request_timeout", "verbosity")
"""The namespace is the agent's; what takes long is no single request; what kubectl logs is nobody's question here."""


def users_kubectl(context: click.Context) -> list[str]:
    """The beginning of a kubectl command line that speaks to the same cluster as the same user.

    Raises:
        GhostError: there is no kubectl on PATH.
    """
    path = shutil.which("kubectl")
    if path is None:
        raise GhostError(
            "kubectl is not on PATH, and forwarding a port is its work",
            "kubectl ghost metrics serve serves the same from this machine, without it.",
        )
    return [path, *_flags(context)]


def _flags(context: click.Context) -> list[str]:
    flags: list[str] = []
    for name, value in values(context).items():
        if name in _NOT_PASSED_ON:
            continue
        flag = f"--{_RENAMED.get(name, name.replace('_', '-'))}"
        if value is True:
            flags.append(flag)
        else:
            flags += [f"{flag}={single}" for single in (value if isinstance(value, tuple) else (value,))]
    return flags
