"""Whatever the emitter writes, libyaml reads back; and it looks as kubectl's does."""

from __future__ import annotations

import string

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kubectl_ghost.render.yaml_out import dump, dump_all

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no defect of the emitter."""

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

WORDS = ["true", "True", "yes", "No", "on", "OFF", "y", "n", "null", "Null", "~", ".inf", "-.INF", ".nan", "<<", "="]

TRICKY = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text(" \n\t:#-?'\"\\&*![]{}|>%@`,=~<.\r\x85\u2028\ufeff\x7f\x1b😀é" + string.hexdigits, max_size=12),
    st.text("0123456789:-+._eExobTZ ", max_size=12),
    st.from_regex(r"[-+]?[0-9_]{1,4}(\.[0-9_]{0,3})?([eE][-+]?[0-9]{1,2})?", fullmatch=True),
    st.from_regex(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?Z?)?", fullmatch=True),
    st.sampled_from(WORDS),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TRICKY)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TRICKY, inner, max_size=4)),
    max_leaves=20,
)


@PATIENT
@given(DATA)
@example({"a": [{"b": "x\ny\n"}, ["\n", [" lead\nline"]], "trail \nline", {"k\nk": "v"}]})
@example({"k" * 2000: {"a": "b\nc"}, "l" * 200: [1], "m" * 129: "\n\n"})
@example(["---", "--- a", "...", "-", "- a", "?", "? a", ":", "a\n---\nb", "0o7", "0b1", "0x1F"])
@example([1e21, 1e-7, 1234567.5, -1e300, 1.0, -0.5, 5e-324])
@example(["a\x00b", "\ufeffbom", "é", "😀", "\ue000", "\uffff", "tab\t", "\r\n"])
def test_round_trip(data):
    text = dump(data)
    assert yaml.load(text, LOADER) == data
    assert text.endswith("\n")


@PATIENT
@given(st.lists(DATA, min_size=1, max_size=4))
def test_documents_round_trip(documents):
    assert list(yaml.load_all("".join(dump_all(documents)), LOADER)) == documents


@PATIENT
@given(DATA)
def test_embedded_in_lists_and_maps_it_reads_back(data):
    nested = {"items": [[data], {"deep": data}]}
    assert yaml.load(dump(nested), LOADER) == nested


def test_types_survive():
    data = {"s": "1", "i": 1, "b": True, "t": "true", "n": None, "e": "", "f": 1.5, "d": "2026-01-01"}
    loaded = yaml.load(dump(data), LOADER)
    assert {key: type(value) for key, value in loaded.items()} == {key: type(value) for key, value in data.items()}


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("node-0", "node-0"),
        ("nvidia.com/gpu", "nvidia.com/gpu"),
        ("1Ti", "1Ti"),
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("true", '"true"'),
        ("y", '"y"'),
        ("64", '"64"'),
        ("0x1F", '"0x1F"'),
        ("1_000", '"1_000"'),
        ("1:20", '"1:20"'),
        ("1.2.3", "1.2.3"),
        (".5", '".5"'),
        (".", "."),
        ("2026-01-01T00:00:00Z", '"2026-01-01T00:00:00Z"'),
        ("", '""'),
        ("~", '"~"'),
        (" lead", "' lead'"),
        ("trail ", "'trail '"),
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        ("a:b#c", "a:b#c"),
        ("a:", "'a:'"),
        ("-", "'-'"),
        ("- x", "'- x'"),
        ("-x", "-x"),
        ("?x", "?x"),
        (": x", "': x'"),
        ("[x]", "'[x]'"),
        ("a[b]", "a[b]"),
        ("it's", "it's"),
        ("'q'", "'''q'''"),
        ("---", "'---'"),
        ("tab\tx", '"tab\\tx"'),
        ('{"model":"h100"}', '\'{"model":"h100"}\''),
        ("\x1b[31m", '"\\e[31m"'),
        ("😀", '"\\U0001F600"'),
        ("\x7f", '"\\x7F"'),
        ("half \ud800", "half \ufffd"),
        (True, "true"),
        (None, "null"),
        (7, "7"),
        (1.0, "1"),
        (1234567.5, "1.2345675e+06"),
        (1e21, "1.0e+21"),
        (2.0**53, "9.007199254740992e+15"),
        (2.0**53 - 1, "9007199254740991"),
        ([], "[]"),
        ({}, "{}"),
        ("a\nb", "|-\n    a\n    b"),
        ("a\nb\n", "|\n    a\n    b"),
        ("a\n\n", "|+\n    a\n"),
        (" a\nb", "|2-\n     a\n    b"),
        ("a \nb", '"a \\nb"'),
    ],
)
def test_style_is_kubectls(value, want):
    assert dump([{"k": value}]) == f"- k: {want}\n"


def test_layout_is_kubectls():
    data = {
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}], "matrix": [[1, 2], [3]]},
        "kind": "Node",
        "a": ["x\ny"],
    }
    assert dump(data) == (
        "a:\n- |-\n  x\n  y\nkind: Node\nspec:\n  matrix:\n  - - 1\n    - 2\n  - - 3\n"
        "  taints:\n  - effect: NoSchedule\n    key: a\n"
    )


def test_keys_are_in_the_order_of_kubectls_library():
    keys = ["mig-1g.10gb", "mig-1g.5gb", "mig-1g.100gb", "b", "B", "_", "a.b", "a-b", "a1", "a01", "a", "x105", "x15"]
    want = ["_", "B", "a", "a-b", "a.b", "a1", "a01", "b", "mig-1g.5gb", "mig-1g.100gb", "mig-1g.10gb", "x15", "x105"]
    assert [line.partition(":")[0] for line in dump(dict.fromkeys(keys)).splitlines()] == want


def test_a_long_key_takes_the_explicit_form():
    assert dump({"k" * 129: 1}) == f"? {'k' * 129}\n: 1\n"
    assert dump({"k" * 128: 1}) == f"{'k' * 128}: 1\n"


def test_separator_stands_between_documents_only():
    assert "".join(dump_all([{"a": 1}, {"b": 2}])) == "a: 1\n---\nb: 2\n"


def test_input_is_left_alone():
    data = {"b": 1, "a": [2]}
    dump(data)
    assert list(data) == ["b", "a"]
