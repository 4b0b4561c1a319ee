"""Kubernetes quantities, as far as hardware needs them: whole and milli CPUs, bytes with a suffix."""

from __future__ import annotations

import re
from decimal import Decimal

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_PARTS = {"n": Decimal(10) ** -9, "u": Decimal(10) ** -6, "m": Decimal(10) ** -3}
_PATTERN = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d{1,3})|([num]|[KMGTPE]i|[kMGTPE]?))", re.ASCII)


def parse_quantity(text: str) -> Decimal:
    """The number that a Kubernetes quantity stands for (`2Gi` is 2147483648, `500m` is 0.5).

    Raises:
        ValueError: if the text is no quantity.
    """
    match = _PATTERN.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is no Kubernetes quantity")
    number, exponent, suffix = match.groups()
    if exponent:
        return Decimal(number + exponent)
    factor = _PARTS.get(suffix) or _BINARY.get(suffix) or _DECIMAL[suffix]
    return Decimal(number) * factor


def count(text: str | int | None) -> int:
    """A whole number of devices from a capacity as the API server prints it; absent or nonsense counts as 0."""
    try:
        return int(parse_quantity(str(text or 0)))
    except ValueError:
        return 0


def mebibytes(mib: int) -> str:
    """Canonical form of a number of MiB, as the API server prints it: 81559Mi, 40Gi."""
    for suffix, factor in (("Ti", 2**20), ("Gi", 2**10)):
        if mib % factor == 0:
            return f"{mib // factor}{suffix}"
    return f"{mib}Mi"
