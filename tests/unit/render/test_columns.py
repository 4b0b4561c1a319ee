"""The plain table: kubectl's widths, and cells that somebody hostile has written."""

from __future__ import annotations

import pytest

from kubectl_ghost.render.columns import Column, table
from kubectl_ghost.render.escape import escape_cell, replace_surrogates
from kubectl_ghost.render.label_columns import label_columns

NAME = Column("Name", lambda row: row["name"])
UP = Column("up", lambda row: row.get("up", ""))
ZONE = Column("ZONE", lambda row: row.get("zone", ""), wide=True)
ROWS = [{"name": "node-0", "up": "1", "zone": "a"}, {"name": "node-10"}]


def text(*arguments, **options):
    return "".join(table(*arguments, **options))


def test_titles_are_upper_case_columns_three_apart_and_empty_cells_none():
    assert text([NAME, UP], ROWS) == "NAME      UP\nnode-0    1\nnode-10   <none>\n"


def test_a_column_is_never_narrower_than_six():
    up = Column("UP", lambda row: "1")
    assert text([up, NAME], ROWS) == "UP    NAME\n1     node-0\n1     node-10\n"


def test_wide_columns_show_only_when_asked_for():
    assert "ZONE" not in text([NAME, ZONE], ROWS)
    assert text([NAME, ZONE], ROWS, wide=True) == "NAME      ZONE\nnode-0    a\nnode-10   <none>\n"


def test_without_headers_the_title_takes_no_room():
    long = Column("A-VERY-LONG-TITLE", lambda row: "x")
    assert text([long, NAME], ROWS, headers=False) == "x     node-0\nx     node-10\n"


def test_no_rows_print_nothing():
    assert text([NAME, UP], []) == ""


def test_no_trailing_blanks_where_the_last_cell_is_empty():
    blank = Column("X", lambda row: "", empty="")
    assert text([NAME, blank], ROWS) == "NAME      X\nnode-0\nnode-10\n"


def test_lines_are_chunks():
    assert list(table([NAME], ROWS)) == ["NAME\n", "node-0\n", "node-10\n"]


@pytest.mark.parametrize(
    ("cell", "want"),
    [
        ("plain é 😀", "plain é 😀"),
        ("\x1b[31mred", "^[[31mred"),
        ("over\rwrite", "over\\rwrite"),
        ("two\nlines", "two\\nlines"),
        ("a\tb", "a\\tb"),
        ("\x07\x9b\x7f", "\\x07\\x9b\\x7f"),
        ("a\u202eb\u2028c", "a\\u202eb\\u2028c"),
        ("half \ud800", "half \\ud800"),
        ("no\u00a0break", "no\u00a0break"),
    ],
)
def test_cells_are_escaped(cell, want):
    assert escape_cell(cell) == want
    assert text([Column("C", lambda row: cell)], [{}], headers=False) == want + "\n"


def test_surrogates_become_what_go_makes_of_them():
    assert replace_surrogates("é\ud800x") == "é\ufffdx"


def test_label_columns_are_named_after_the_last_part_of_the_key():
    rows = [
        {"name": "node-0", "metadata": {"labels": {"topology.kubernetes.io/zone": "a", "b": "1"}}},
        {"name": "node-1", "metadata": {}},
        {"name": "node-2"},
    ]
    columns = [NAME, *label_columns(["topology.kubernetes.io/zone,b", "c"], show_labels=True)]
    assert text(columns, rows) == (
        "NAME     ZONE   B     C     LABELS\n"
        "node-0   a      1           b=1,topology.kubernetes.io/zone=a\n"
        "node-1                      <none>\n"
        "node-2                      <none>\n"
    )


def test_no_label_columns_unless_asked_for():
    assert label_columns() == []


def test_label_values_are_escaped():
    rows = [{"metadata": {"labels": {"a": "\x1b[2J"}}}]
    assert text(label_columns(["a"], show_labels=True), rows, headers=False) == "^[[2J   a=^[[2J\n"
