"""The flags that say what the metrics agent serves, and the agent's options that they mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ghost_agent.options import AgentOptions

F = TypeVar("F", bound=Callable[..., Any])
_LARGEST_FILE = 2**20
"""Bytes: for a pod it travels in a ConfigMap, which takes no more (k8s.io/kubernetes, MaxSecretSize)."""

_SERIES = (
    click.option(
        "--fields",
        default="default",
        show_default=True,
        metavar="LIST|FILE.csv",
        help="Groups and names of DCGM fields, comma separated, such as default,ecc,profiling or all; or a counters "
        "file of dcgm-exporter",
    ),
    click.option(
        "--compat",
        multiple=True,
        metavar="LIST",
        help="Ways of dcgm-exporter that depend on its release or flags: hostname, old-namespace, pod-labels, pod-uid, "
        "mig-parent",
    ),
    click.option(
        "--jitter",
        type=float,
        default=0.0,
        metavar="PERCENT",
        help="Let utilisation differ by up to so much of what is declared; without it every value is constant",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="What --jitter is drawn from"),
    click.option(
        "--time-scale",
        type=float,
        default=1.0,
        show_default=True,
        help="How many seconds of a pod's phases go by in one: 60 makes a minute an hour",
    ),
)


def series_options(function: F) -> F:
    """--fields, --compat, --jitter, --seed and --time-scale, handed on as they are named."""
    for option in reversed(_SERIES):
        function = option(function)
    return function


def agent_options(
    *, fields: str, compat: tuple[str, ...], jitter: float, seed: int, time_scale: float, **given: Any
) -> AgentOptions:
    """The agent's options that the flags mean; --fields may name a file.

    Raises:
        InputError: naming the flag that is not understood.
    """
    from ghost_agent import options

    return options.agent_options(
        fields=fields,
        counters=_counters(fields),
        compat=compat,
        jitter=jitter,
        seed=seed,
        time_scale=time_scale,
        **given,
    )


def _counters(fields: str) -> str | None:
    """The text of the file that --fields names, None if it names none."""
    if not (fields.endswith(".csv") or "/" in fields):
        return None
    from kubectl_ghost.domain.errors import InputError

    try:
        with Path(fields).open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise InputError(f"cannot read --fields {fields}: it is larger than a MiB")
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read --fields {fields}: it is no UTF-8 text") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read --fields {fields}: {reason}") from error
