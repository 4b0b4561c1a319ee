"""Durations in Go's notation, as flags and annotations give them."""

import pytest

from kubectl_ghost.domain.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("2m", 120), ("1h30m", 5400), ("300ms", 0.3), ("0", 0), ("15", 15), ("1.5h", 5400)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["100000000000h", "9" * 500, "", "s", "5 m", "5d", "-1s", "1m-", "٣s", "٣"])
def test_no_durations(text):
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)
