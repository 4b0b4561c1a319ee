"""GPUs that several pods share: how users say it, and where NVIDIA's device plugin can do it."""

from __future__ import annotations

import re
from typing import Final, Literal

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.hardware import Advertise, MigMode, PoolSettings, Sharing, SharingKind

UNSHARED: Final = "none"
"""What a user says for GPUs that are not shared, as against saying nothing."""
SharingRequest = Sharing | Literal["none"]

LEAST_REPLICAS = 2
"""NVIDIA/k8s-device-plugin, api/config/v1: fewer replicas are an error."""
MOST_REPLICAS = {SharingKind.TIME_SLICING: 256, SharingKind.MPS: 48}
"""Of MPS the clients that one server takes (NVIDIA/k8s-device-plugin, cmd/mps-control-daemon/mps/device.go, from
compute capability 7.5 on); time slicing has no limit there, and this one is our own."""
_FORM = re.compile(r"(time-slicing|mps)=([0-9]{1,9})")
_SPELLING = "Use time-slicing=4, mps=4 or none."


def parse_sharing(text: str, *, renamed: bool = False) -> SharingRequest:
    """`time-slicing=4`, `mps=4` or `none`.

    Args:
        renamed: whether the shares are counted as nvidia.com/gpu.shared.

    Raises:
        InputError: if it is spelled in another way, or the number is out of bounds.
    """
    if text == UNSHARED:
        if renamed:
            raise InputError("--rename-by-default makes no sense with --sharing none: there are no shares to rename")
        return UNSHARED
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(f'invalid --sharing "{text}"', _SPELLING)
    kind, replicas = SharingKind(match.group(1)), int(match.group(2))
    if not LEAST_REPLICAS <= replicas <= MOST_REPLICAS[kind]:
        raise InputError(
            f'invalid --sharing "{text}": it must be from {LEAST_REPLICAS} to {MOST_REPLICAS[kind]}',
            "For GPUs that are not shared, use --sharing none." if replicas < LEAST_REPLICAS else None,
        )
    return Sharing(kind, replicas, renamed)


def check_sharing(settings: PoolSettings) -> None:
    """Refuse sharing where the device plugin offers nothing, or cannot share it.

    Raises:
        InputError: naming what does not go together.
    """
    if settings.sharing is None:
        return
    kind = settings.sharing.kind
    if settings.advertise is Advertise.DRA:
        raise InputError(
            f"--sharing {kind.value} needs GPUs that are counted, and --advertise dra counts none",
            "Use --advertise both or device-plugin, or --sharing none. A DRA claim is shared by letting pods name it.",
        )
    if kind is SharingKind.MPS and settings.mig is MigMode.DYNAMIC:
        raise InputError(
            "--sharing mps and --mig dynamic do not go together: the device plugin has no MPS with MIG devices",
            "Use --sharing time-slicing=4, or --mig static.",
        )
