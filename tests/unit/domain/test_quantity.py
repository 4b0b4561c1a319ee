"""Quantities as the API server reads and prints them."""

from decimal import Decimal

import pytest

from kubectl_ghost.domain.quantity import count, mebibytes, parse_quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("2Gi", 2**31),
        ("500m", Decimal("0.5")),
        ("1k", 1000),
        ("-1", -1),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("100u", Decimal("0.0001")),
        ("2E", 2 * 10**18),
        (".5", Decimal("0.5")),
    ],
)
def test_parse(text, number):
    assert parse_quantity(text) == number


@pytest.mark.parametrize("text", ["", "x", "1gb", "1 Gi", "Gi", "1e", "٣"])
def test_nonsense(text):
    with pytest.raises(ValueError, match="no Kubernetes quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("mib", "text"), [(81559, "81559Mi"), (40960, "40Gi"), (15360, "15Gi"), (1048576, "1Ti"), (183359, "183359Mi")]
)
def test_canonical_memory(mib, text):
    assert mebibytes(mib) == text


@pytest.mark.parametrize(("text", "number"), [("8", 8), (None, 0), ("", 0), ("junk", 0), (3, 3)])
def test_count(text, number):
    assert count(text) == number
