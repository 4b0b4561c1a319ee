"""JSON as Go's encoder writes it, and Go's own text of a value."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_ghost.render.gotext import go_text, go_type, json_float
from kubectl_ghost.render.json_out import compact, indented

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no defect of the emitter."""

# Above 2**53, Go writes a whole number as digits that read back as another integer; as a float it is the same.
NUMBERS = st.floats(-(2**53), 2**53)
DATA = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), NUMBERS, st.text(st.characters(exclude_categories=["Cs"]))),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=20,
)


@PATIENT
@given(DATA)
def test_round_trip(data):
    assert json.loads(indented(data)) == data
    assert json.loads(compact(data)) == data


@PATIENT
@given(st.recursive(st.integers(), lambda x: st.lists(x) | st.dictionaries(st.sampled_from("abc"), x), max_leaves=9))
def test_layout_is_the_standard_librarys(data):
    assert indented(data) == json.dumps(data, indent=4, sort_keys=True)
    assert compact(data) == json.dumps(data, separators=(",", ":"), sort_keys=True)


def test_strings_are_escaped_as_go_does():
    value = '<b>&\u2028\x7f\b\f\x01é"\\\ud800'
    assert compact(value) == '"\\u003cb\\u003e\\u0026\\u2028\x7f\\b\\f\\u0001é\\"\\\\\ufffd"'


def test_a_level_indents_all_lines_but_the_first():
    assert indented({"a": [1]}, level=1) == '{\n        "a": [\n            1\n        ]\n    }'


@pytest.mark.parametrize(
    ("number", "in_json", "in_text"),
    [
        (1.0, "1", "1"),
        (1.5, "1.5", "1.5"),
        (1e6, "1000000", "1e+06"),
        (1e5, "100000", "100000"),
        (123456789.0, "123456789", "1.23456789e+08"),
        (1234567.5, "1234567.5", "1.2345675e+06"),
        (1e20, "100000000000000000000", "1e+20"),
        (1e21, "1e+21", "1e+21"),
        (0.0001, "0.0001", "0.0001"),
        (0.00001, "0.00001", "1e-05"),
        (1.5e-7, "1.5e-7", "1.5e-07"),
        (1e-12, "1e-12", "1e-12"),
        (-2.5, "-2.5", "-2.5"),
        (0.0, "0", "0"),
    ],
)
def test_numbers_are_gos(number, in_json, in_text):
    assert json_float(number) == in_json
    assert go_text(number) == in_text


def test_values_as_fmt_prints_them():
    value = {"b": [1, "x", None], "a": {"t": True, "f": False}, "e": {}}
    assert go_text(value) == "map[a:map[f:false t:true] b:[1 x <nil>] e:map[]]"


def test_types_as_go_names_them():
    assert [go_type(value) for value in ({}, [], "", True, 1, 1.5, None)] == [
        "map[string]interface {}",
        "[]interface {}",
        "string",
        "bool",
        "int64",
        "float64",
        "<nil>",
    ]
