"""`-o custom-columns`: kubectl's rules for headings, missing values and lists."""

from __future__ import annotations

import pytest

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.render.custom_columns import custom_table, parse_spec, parse_template

ROWS = [
    {"metadata": {"name": "node-0", "labels": {"b": "2", "a": "1"}}, "x": {"list": [1, 2], "n": None, "e": ""}},
    {"metadata": {"name": "node-10"}, "x": {"big": 1e6, "esc": "\x1b[2J\n"}},
]


def text(spec, rows=ROWS, **options):
    return "".join(custom_table(parse_spec(spec), rows, **options))


def test_headings_stay_as_given():
    assert text("Name:.metadata.name,L:metadata.labels") == ("Name      L\nnode-0    map[a:1 b:2]\nnode-10   <none>\n")


def test_lists_are_joined_by_commas():
    assert text("L:.x.list[*],W:.x.list", ROWS[:1]) == "L     W\n1,2   [1 2]\n"


def test_null_missing_and_empty_differ():
    assert text("N:.x.n,M:.x.m,E:.x.e,Z:kind", ROWS[:1], headers=False) == "<nil>   <none>         <none>\n"


def test_numbers_are_gos():
    assert text("B:.x.big", ROWS[1:], headers=False) == "1e+06\n"


def test_cells_are_escaped():
    assert text("E:.x.esc", ROWS[1:], headers=False) == "^[[2J\\n\n"


def test_headings_stand_even_without_rows():
    assert text("NAME:.metadata.name,B:.b", []) == "NAME   B\n"


def test_a_path_may_contain_a_colon():
    assert text("L:.x.list[0:2]", ROWS[:1], headers=False) == "1,2\n"


def test_file_of_two_lines():
    columns = parse_template("NAME   UID\nmetadata.name  {.metadata.uid}\n")
    assert "".join(custom_table(columns, ROWS)) == "NAME      UID\nnode-0    <none>\nnode-10   <none>\n"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "custom-columns format specified but no custom columns given"),
        ("NAME", "unexpected custom-columns spec: NAME, expected <header>:<json-path-expr>"),
        ("A:.a,B", "unexpected custom-columns spec: B, expected <header>:<json-path-expr>"),
        ("A:", "unexpected custom-columns spec: A:, expected <header>:<json-path-expr>"),
        ("A:.a[x]", "invalid array index x"),
    ],
)
def test_errors_of_a_spec(spec, message):
    with pytest.raises(GhostError) as caught:
        parse_spec(spec)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("", "invalid template, missing header line."),
        ("A B", "invalid template, missing spec line."),
        ("A B\n.a", "number of headers (2) and field specifications (1) don't match"),
    ],
)
def test_errors_of_a_file(template, message):
    with pytest.raises(GhostError) as caught:
        parse_template(template)
    assert caught.value.message.startswith(message)
