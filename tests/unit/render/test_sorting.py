"""`--sort-by`: what is compared as what, and what comes first."""

from __future__ import annotations

import pytest

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.render.sorting import sort_by


def order(values, expression=".v"):
    """The order in which rows with these values come out, by their positions; Ellipsis for a row without the field."""
    rows = [{"id": index} if value is ... else {"id": index, "v": value} for index, value in enumerate(values)]
    return [row["id"] for row in sort_by(rows, expression)]


@pytest.mark.parametrize(
    ("values", "want"),
    [
        (["node-2", "node-10", "node-1"], [2, 1, 0]),
        ([10, 9, 1.5], [2, 1, 0]),
        (["1Ti", "500Gi", "100G", "1"], [3, 2, 1, 0]),
        (["1", "500m", "2", "1500u", "1n"], [4, 3, 1, 0, 2]),
        (["1Ki", "1k", "1e3", "999", "1E"], [3, 1, 2, 0, 4]),
        (["-1", "+2", "0.5"], [0, 2, 1]),
        (["10", "9", "x"], [0, 1, 2]),
        ([True, False], [1, 0]),
        ([2, ..., 1], [1, 2, 0]),
        (["b", None, ..., "a"], [1, 2, 3, 0]),
        (["5", None, "10"], [1, 0, 2]),
        ([1, 1, 0], [2, 0, 1]),
        ([-1, ..., -2], [1, 2, 0]),
        (["-1", None], [1, 0]),
        (["2026-01-02T00:00:00Z", "2025-12-31T00:00:00Z"], [1, 0]),
    ],
)
def test_order(values, want):
    assert order(values) == want


def test_rows_are_not_sorted_in_place():
    rows = [{"v": 2}, {"v": 1}]
    assert sort_by(rows, "v") == [{"v": 1}, {"v": 2}]
    assert rows == [{"v": 2}, {"v": 1}]


def test_the_first_of_several_values_counts():
    rows = [{"v": [3, 0]}, {"v": [2, 9]}]
    assert sort_by(rows, ".v[*]") == [{"v": [2, 9]}, {"v": [3, 0]}]


def test_nothing_to_sort():
    assert sort_by([], ".v") == []


@pytest.mark.parametrize(
    ("rows", "expression", "message"),
    [
        ([{"v": 1}], ".nope", 'couldn\'t find any field with path "{.nope}" in the list of objects'),
        ([{"v": 1}], ".v[", "sorting error: unterminated array"),
        ([{"v": {}}], ".v", "field {.v} is an unsortable type: map[string]interface {}"),
        ([{"v": "a"}, {"v": 1}], ".v", "field {.v} is an unsortable type: int64"),
    ],
)
def test_errors(rows, expression, message):
    with pytest.raises(GhostError) as caught:
        sort_by(rows, expression)
    assert caught.value.message == message


def test_an_expression_that_is_no_path_is_an_error():
    with pytest.raises(GhostError, match="sorting error: unexpected path string"):
        sort_by([{"a": 1}], "{.a}{.b}")
