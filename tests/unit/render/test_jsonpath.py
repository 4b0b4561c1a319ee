r"""Templates and their output, compared with kubectl 1.32's on the same objects.

Only one differs: an index out of bounds within an existence filter matches there, since the error is dropped.
"""

from __future__ import annotations

import pytest

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.render.jsonpath import parse, parse_relaxed
from kubectl_ghost.render.jsonpath_nodes import JsonPathError

TAINTS = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]
LIST = {
    "kind": "List",
    "items": [
        {
            "metadata": {"name": "node-0", "labels": {"kubernetes.io/hostname": "node-0"}, "uid": "u0"},
            "spec": {"taints": TAINTS},
            "x": {"i": 7, "f": 1.5, "big": 1234567.5, "t": True, "n": None, "list": [1, 2, 3], "nest": [[1, 2], [3]]},
        },
        {"metadata": {"name": "node-10"}, "spec": {"taints": TAINTS}, "x": {"i": 3, "q": "a)b"}},
        {"metadata": {"name": "node-2"}, "spec": {"taints": TAINTS}, "x": {"i": 20, "q": ""}},
    ],
}


@pytest.mark.parametrize(
    ("template", "want"),
    [
        (r"{.items[*].metadata.name}", "node-0 node-10 node-2"),
        (r'{range .items[*]}{.metadata.name}{"\t"}{.x.i}{"\n"}{end}', "node-0\t7\nnode-10\t3\nnode-2\t20\n"),
        (r"text {.kind} {$.kind} {@.kind}", "text List List List"),
        (r"{kind}", None),
        (r"{.items[0].spec.taints[0]}", '{"effect":"NoSchedule","key":"a"}'),
        (r"{.items[-1].metadata.name}", "node-2"),
        (r"{.items[-2].metadata.name}", "node-10"),
        (r"{.items[-1:].metadata.name}", "node-2"),
        (r"{.items[::2].metadata.name}", "node-0 node-2"),
        (r"{.items[0:2].metadata.name}", "node-0 node-10"),
        (r"{.items[1:].metadata.name}", "node-10 node-2"),
        (r"{.items[:-1].metadata.name}", "node-0 node-10"),
        (r"{.items[1:1].metadata.name}", ""),
        (r"{.items[5:5].metadata.name}", ""),
        (r"{.items[].metadata.name}", "node-0"),
        (r"{.items[?(@.x.i==@.x.nope)].x.i}", ""),
        (r"{.items[?(@.x.i==@.x.i)].x.i}", "7 3 20"),
        (r"{..name}", "node-0 node-10 node-2"),
        (r"{.items[0]..key}", "a b"),
        (r'{.items[?(@.metadata.name=="node-2")].x.i}', "20"),
        (r'{.items[?(@.x.q=="a)b")].metadata.name}', "node-10"),
        (r"{.items[?(@.x.i>5)].metadata.name}", "node-0 node-2"),
        (r"{.items[?(@.x.i>=7)].metadata.name}", "node-0 node-2"),
        (r"{.items[?(@.x.i<=7)].metadata.name}", "node-0 node-10"),
        (r"{.items[?(@.x.i<7)].metadata.name}", "node-10"),
        (r"{.items[?(@.x.i!=7)].metadata.name}", "node-10 node-2"),
        (r"{.items[?(@.x.q)].metadata.name}", "node-10 node-2"),
        (r"{.items[?(@.x.t==true)].metadata.name}", "node-0"),
        (r"{.items[?(@.x.f==1.5)].metadata.name}", "node-0"),
        (r'{.items[*].spec.taints[?(@.effect == "NoExecute")].key}', "b b b"),
        (r"{.items[?(@.spec.taints[5])].metadata.name}", ""),
        (r"{.items[0].metadata['name','uid']}", "node-0 u0"),
        (r"{.items[0].x.list[0,2]}", "1 3"),
        (r"{.items[0].metadata['name']}", "node-0"),
        (r"{.items[0].metadata.labels['kubernetes\.io/hostname']}", "node-0"),
        (r"{.items[0].metadata.labels['kubernetes.io/hostname']}", ""),
        (r"{.items[0].metadata.labels.kubernetes\.io/hostname}", "node-0"),
        (r"{.items[0].x.nest[*][*]}", "1 2 3"),
        (r"{.items[0].x.list.*}", "1 2 3"),
        (r"{.items[0].x.n}|{.items[0].x.f}|{.items[0].x.t}|{.items[0].x.big}", "null|1.5|true|1.2345675e+06"),
        (r"{.items[0].x.n.deeper}{.nope}{.nope[0]}{.nope.a.b}", ""),
        (r"{range .items[*]}{range .spec.taints[*]}{.key}-{end}|{end}z", "a-b-|a-b-|a-b-|z"),
        (r"{range .nope[*]}{.x}{'q'}{end}z", "z"),
        (r"{range .items[*]}{.metadata.name}", "node-0node-10node-2"),
        (r"{range .items[0:2]}{.x.i}{end},{range .items[2:]}{.x.i}{end}", "73,20"),
        (r"{'x\'y'}", "x'y"),
        (r'{"\u00e9\x41\101"}', "éAA"),
        (r"{1}{2.5}{true}", "12.5true"),
        (r"}{.kind}", "}List"),
        (r"plain", "plain"),
    ],
)
def test_render(template, want):
    if want is None:
        with pytest.raises(GhostError, match="unrecognized identifier kind"):
            parse(template).render(LIST)
    else:
        assert parse(template).render(LIST) == want


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{.a", "unclosed action"),
        ("{.a\n}", "unclosed action"),
        ("{.items[0", "unterminated array"),
        ("{.items[x]}", "invalid array index x"),
        ("{.items[-]}", "array index - is not a number"),
        ('{.a["b"]}', 'invalid array index "b"'),
        ('{"abc}', "unterminated quoted string"),
        (r'{"\q"}', r'unquote string "\q" error invalid syntax'),
        ("{....}", "invalid multiple recursive descent"),
        ("{%}", "unrecognized character in action: U+0025 '%'"),
        ("{1.2.3}", "cannot parse number 1.2.3"),
        ("{.a[?(@.b==1}", "unterminated filter"),
        ("{.a[?(@.b)}", "unclosed array expect ]"),
        ('{.a[?(@.b=~"x")]}', "unrecognized character in action: U+007E '~'"),
    ],
)
def test_parse_errors_are_kubectls(template, reason):
    with pytest.raises(GhostError) as caught:
        parse(template)
    assert caught.value.message == f"error parsing jsonpath {template}, {reason}"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{.items[5].x}", "array index out of bounds: index 5, length 3"),
        ("{.items[9:].x}", "array index out of bounds: index 9, length 3"),
        ("{.items[0:9].x}", "array index out of bounds: index 8, length 3"),
        ("{.items[2:1].x}", "starting index 2 is greater than ending index 1"),
        ("{.items[0:3:0].x}", "step must be > 0"),
        ("{.kind[0]}", "string is not array or slice"),
        ("{.items[0].metadata[0]}", "map[string]interface {} is not array or slice"),
        ("{.kind[?(@.a)]}", "List is not array or slice and cannot be filtered"),
        ("{.items[?(@.x.i=='x')]}", "incompatible types for comparison"),
        ("{.items[?(@.x.f==1)]}", "incompatible types for comparison"),
        ("{.items[?(@.x.t<true)]}", "invalid type for comparison"),
        ("{.items[?(@.x==1)]}", "invalid type for comparison"),
        ("{.items[?(@.x.i<>1)]}", "unrecognized filter operator <>"),
        ("{.items[?(@.spec.taints[*].key=='a')]}", "can only compare one element at a time"),
        ("{foo}", "unrecognized identifier foo"),
        ("{end}", "not in range, nothing to end"),
    ],
)
def test_a_template_that_does_not_fit_says_why(template, reason):
    with pytest.raises(GhostError) as caught:
        parse(template).render(LIST)
    assert caught.value.message == f'error executing jsonpath "{template}": {reason}'


def test_as_json_every_piece_is_a_list():
    assert parse("{.items[*].x.i}{.nope}").render_json(LIST) == "[\n    7,\n    3,\n    20\n]\n[]\n"


def test_surrogates_never_reach_the_stream():
    assert parse("{.a}").render({"a": "x\ud800"}) == "x\ufffd"


def test_a_parsed_template_can_be_applied_again():
    path = parse("{range .items[*]}{.metadata.name} {end}")
    assert path.render(LIST) == path.render(LIST) == "node-0 node-10 node-2 "


@pytest.mark.parametrize("expression", ["metadata.name", ".metadata.name", "{metadata.name}", "{.metadata.name}"])
def test_relaxed_forms_are_one(expression):
    path = parse_relaxed(expression)
    assert path.source == "{.metadata.name}"
    assert path.find(LIST["items"][0]) == [["node-0"]]


@pytest.mark.parametrize("expression", ["{a}{b}", "{.a", ""])
def test_relaxed_refuses_anything_but_one_path(expression):
    with pytest.raises(JsonPathError, match="unexpected path string"):
        parse_relaxed(expression)
