"""The flags that say how the metrics agent runs as a pod, and what they ask for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kubectl_ghost.conventions.durations import DURATION

if TYPE_CHECKING:
    from ghost_agent.options import AgentOptions
    from kubectl_ghost.cluster.reads import Reader
    from kubectl_ghost.domain.keys import Json
    from kubectl_ghost.manifests.agent import AgentPod

F = TypeVar("F", bound=Callable[..., Any])

_POD = (
    click.option(
        "--ttl",
        type=DURATION,
        default="1h",
        show_default=True,
        help="How long the pod lives at most, whatever becomes of you; 0 for ever",
    ),
    click.option("--image", help="An image with python3, 3.11 or newer, in the place of Docker's official one"),
    click.option("--read-only", is_flag=True, help="Do not record on pods which GPUs they have, nor have the right to"),
)


def pod_options(function: F) -> F:
    """--ttl, --image and --read-only."""
    for option in reversed(_POD):
        function = option(function)
    return function


def agent_pod(options: AgentOptions, ttl: float, image: str | None) -> AgentPod:
    """The pod that the flags mean, with the agent of this installation in it."""
    from kubectl_ghost.manifests.agent import DEFAULT_IMAGE, AgentPod
    from kubectl_ghost.operations.agent_bundle import agent_bundle

    return AgentPod(
        agent_bundle(),
        tuple(options.arguments()),
        options.counters,
        image or DEFAULT_IMAGE,
        math.ceil(ttl) if ttl else None,
        options.read_only,
    )


def wait_for_agent(reader: Reader, timeout: float) -> Json:
    """The agent's pod once it serves, with a line of progress on a terminal until then."""
    from kubectl_ghost.conventions.progress import ProgressLine
    from kubectl_ghost.operations.agent_waiting import wait_until_ready

    with ProgressLine("agent pods Ready") as progress:
        return wait_until_ready(reader, timeout=timeout, progress=progress)
