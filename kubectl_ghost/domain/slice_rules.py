"""What a server's version asks of ResourceSlices (k8s.io/api resource/v1 at v0.34.0 to v0.37.0)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SliceRules:
    """Attributes:
    counters_beside_devices: shared counters stand in the slice of the devices that use them (1.34), not apart.
    effect_none: the taint effect None exists (from 1.35).
    """

    counters_beside_devices: bool = False
    effect_none: bool = True


CURRENT = SliceRules()


def slice_rules(version: tuple[int, int]) -> SliceRules:
    """The rules of a server by its major and minor version."""
    old = version < (1, 35)
    return SliceRules(counters_beside_devices=old, effect_none=not old)
