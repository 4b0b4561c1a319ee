"""The forms that names, labels and taints must have, checked before anything is read or written."""

from __future__ import annotations

import re
from collections.abc import Collection

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.hardware import Taint
from kubectl_ghost.domain.keys import (
    HOSTNAME_LABEL,
    KWOK_NODE_KEY,
    MANAGED_BY_LABEL,
    MIG_CONFIG_LABEL,
    MIG_CONFIG_STATE_LABEL,
    POOL_LABEL,
    TEMPLATE_LABEL,
)

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_RESERVED = (HOSTNAME_LABEL, MANAGED_BY_LABEL, POOL_LABEL, TEMPLATE_LABEL)
_MIG_LABELS = (MIG_CONFIG_LABEL, MIG_CONFIG_STATE_LABEL)
_RECONCILED_LABELS = ("beta.kubernetes.io/arch", "beta.kubernetes.io/os")
_RECONCILED_TAINTS = "node.kubernetes.io/"
"""What Kubernetes' own node controllers set and take away again, whatever anybody else writes."""
LONGEST_NAME = 63


def check_pool_name(name: str, count: int) -> None:
    """A pool's name must be a DNS label, and so must its last node's name.

    Raises:
        InputError: if it is not.
    """
    if not _DNS_LABEL.fullmatch(name):
        raise InputError(
            f'invalid pool name "{name}": a lower-case DNS label is needed (a-z, 0-9 and "-", such as gpu-a)'
        )
    last = f"{name}-{max(count - 1, 0)}"
    if len(last) > LONGEST_NAME:
        raise InputError(f'invalid pool name "{name}": its node names ({last}) would be longer than {LONGEST_NAME}')


def check_label(key: str, value: str) -> None:
    """A label as the API server takes it.

    Raises:
        InputError: if key or value is malformed.
    """
    prefix, slash, name = key.rpartition("/")
    if not _LABEL_NAME.fullmatch(name) or (slash and not _DNS_SUBDOMAIN.fullmatch(prefix)):
        raise InputError(f'invalid label key "{key}"')
    check_label_value(value, f"label {key}")


def check_label_value(value: str, what: str) -> None:
    """A label's value: empty, or up to 63 letters, digits, `-`, `_` and `.`, with an alphanumeric at both ends."""
    if value and not _LABEL_NAME.fullmatch(value):
        raise InputError(f'invalid value "{value}" for {what}: at most 63 letters, digits, "-", "_" and "."')


def parse_labels(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """`key=value` pairs, comma separated or repeated, sorted by key.

    Raises:
        InputError: if one is malformed.
    """
    labels: dict[str, str] = {}
    for part in parse_words(texts):
        key, equals, value = part.partition("=")
        if not equals:
            raise InputError(f'invalid label "{part}": use key=value')
        check_label(key, value)
        if key in _RESERVED:
            raise InputError(f'label "{key}" is this tool\'s own: it cannot be set')
        if key in _MIG_LABELS:
            raise InputError(
                f'label "{key}" is the MIG manager\'s own: it cannot be set for a pool',
                "Use: kubectl ghost mig-split --config NAME",
            )
        if key in _RECONCILED_LABELS:
            raise InputError(f'label "{key}" is the node controllers\' own: they set it by kubernetes.io/arch and os')
        labels[key] = value
    return tuple(sorted(labels.items()))


def parse_taints(texts: tuple[str, ...]) -> tuple[Taint, ...]:
    """Taints in kubectl's form `key[=value]:effect`, comma separated or repeated, sorted.

    Raises:
        InputError: if one is malformed.
    """
    taints = set()
    for part in parse_words(texts):
        pair, _, effect = part.rpartition(":")
        key, _, value = pair.partition("=")
        if not pair or effect not in _EFFECTS:
            raise InputError(f'invalid taint "{part}": use key=value:effect with effect one of {", ".join(_EFFECTS)}')
        check_label(key, value)
        taints.add(Taint(key, effect, value))
    refuse_doubled(taints)
    return tuple(sorted(taints))


def refuse_doubled(taints: Collection[Taint]) -> None:
    """A node carries one taint of a key and effect.

    Raises:
        InputError: naming a key that stands twice, or that is kwok's and set by --taint.
    """
    keys = [(taint.key, taint.effect) for taint in taints]
    for key, effect in keys:
        if keys.count((key, effect)) > 1:
            raise InputError(f'taint "{key}:{effect}" stands twice: a node can carry it once')
        if key.startswith(_RECONCILED_TAINTS):
            raise InputError(f"taint \"{key}\" is the node controllers' own: they take it away by the node's condition")
        if key == KWOK_NODE_KEY:
            raise InputError(f'taint "{key}" is kwok\'s own', "Use --taint always or --taint never.")


def parse_words(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Comma-separated or repeated words in the order given, blanks trimmed, empty ones dropped."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())
