"""Free ports for a cluster's components.

kwokctl finds ports itself by trying downwards from 32766, so that two clusters that are made at the same time choose
the same ones. Ours are drawn at random, below the range from which the kernel serves outgoing connections.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

from kubectl_ghost.domain.errors import GhostError

PORT_OPTIONS = (
    "kubeApiserverPort",
    "etcdPort",
    "etcdPeerPort",
    "kubeControllerManagerPort",
    "kubeSchedulerPort",
    "kwokControllerPort",
)
"""The options of a KwokctlConfiguration that take a port each."""

_LOWEST, _HIGHEST = 20000, 29999
_ATTEMPTS = 2000


def choose_ports(taken: Collection[int]) -> dict[str, int]:
    """A free port for each option, none of `taken` (other clusters', which may be stopped just now)."""
    chosen: dict[str, int] = {}
    source = random.SystemRandom()
    for _ in range(_ATTEMPTS):
        if len(chosen) == len(PORT_OPTIONS):
            return chosen
        port = source.randint(_LOWEST, _HIGHEST)
        if port not in taken and port not in chosen.values() and is_free(port):
            chosen[PORT_OPTIONS[len(chosen)]] = port
    raise GhostError(f"no free ports between {_LOWEST} and {_HIGHEST}", "stop what listens there and try again")


def is_free(port: int) -> bool:
    """Whether a component could listen on that port of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
