"""The table of cases of k8s.io/apimachinery/pkg/util/duration, and what a timestamp may look like."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubectl_ghost.render.age import age, human_duration

S, M, H, D = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TINY, MS, Y = timedelta(microseconds=1), timedelta(milliseconds=1), timedelta(days=365)


@pytest.mark.parametrize(
    ("duration", "want"),
    [
        (S, "1s"),
        (70 * S, "70s"),
        (190 * S, "3m10s"),
        (70 * M, "70m"),
        (47 * H, "47h"),
        (49 * H, "2d1h"),
        (8 * D + 2 * H, "8d"),
        (367 * D, "367d"),
        (2 * Y + 25 * H, "2y1d"),
        (8 * Y + 2 * H, "8y"),
        (-2 * S, "<invalid>"),
        (-2 * S + TINY, "0s"),
        (0 * S, "0s"),
        (S - MS, "0s"),
        (2 * M - MS, "119s"),
        (2 * M, "2m"),
        (2 * M + S, "2m1s"),
        (10 * M - MS, "9m59s"),
        (10 * M, "10m"),
        (10 * M + S, "10m"),
        (3 * H - MS, "179m"),
        (3 * H, "3h"),
        (3 * H + M, "3h1m"),
        (8 * H - MS, "7h59m"),
        (8 * H, "8h"),
        (8 * H + 59 * M, "8h"),
        (2 * D - MS, "47h"),
        (2 * D, "2d"),
        (2 * D + H, "2d1h"),
        (8 * D - MS, "7d23h"),
        (8 * D, "8d"),
        (8 * D + 23 * H, "8d"),
        (2 * Y - MS, "729d"),
        (2 * Y, "2y"),
        (2 * Y + 23 * H, "2y"),
        (2 * Y + 23 * H + 59 * M, "2y"),
        (2 * Y + 24 * H - MS, "2y"),
        (2 * Y + 24 * H, "2y1d"),
        (3 * Y, "3y"),
        (4 * Y, "4y"),
        (7 * Y, "7y"),
        (8 * Y - MS, "7y364d"),
        (8 * Y, "8y"),
        (8 * Y + 364 * D, "8y"),
        (9 * Y, "9y"),
    ],
)
def test_human_duration(duration, want):
    assert human_duration(duration) == want


@pytest.mark.parametrize(
    ("timestamp", "want"),
    [
        ("2026-08-01T11:55:00Z", "5m"),
        ("2026-08-01T13:55:00+02:00", "5m"),
        ("2026-08-01T11:59:55.500000Z", "4s"),
        ("2026-08-01T11:55:00", "5m"),
        ("2026-08-01T12:00:01Z", "0s"),
        ("2026-08-01T12:00:02Z", "<invalid>"),
        ("yesterday", "<unknown>"),
        ("", "<unknown>"),
        (None, "<unknown>"),
    ],
)
def test_age_of_a_timestamp(timestamp, want):
    assert age(timestamp, datetime(2026, 8, 1, 12, tzinfo=UTC)) == want
