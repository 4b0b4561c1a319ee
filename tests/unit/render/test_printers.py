"""`-o`: every format on the same objects, and the words of the errors."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest
import yaml

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.render.columns import Column
from kubectl_ghost.render.printers import FORMATS, object_name, printer

NODE = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "node-0", "managedFields": [{"manager": "x"}], "labels": {"b": "<2>", "a": "true"}},
}
SLICE = {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "node-0-gpu"}}
COLUMNS = [Column("NAME", lambda row: row["metadata"]["name"]), Column("KIND", lambda row: row["kind"], wide=True)]


def text(output, objects=(NODE, SLICE), **options):
    return "".join(printer(output, **options)(objects))


def test_json_of_one():
    assert text("json", [NODE], single=True) == (
        '{\n    "apiVersion": "v1",\n    "kind": "Node",\n    "metadata": {\n        "labels": {\n'
        '            "a": "true",\n            "b": "\\u003c2\\u003e"\n        },\n        "name": "node-0"\n    }\n}\n'
    )


def test_json_of_several_is_a_list():
    printed = text("json")
    assert printed.startswith(
        '{\n    "apiVersion": "v1",\n    "items": [\n        {\n            "apiVersion": "v1",\n'
    )
    assert printed.endswith('    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')
    loaded = json.loads(printed)
    assert (
        printed == json.dumps(loaded, indent=4, sort_keys=True).replace("<", "\\u003c").replace(">", "\\u003e") + "\n"
    )
    assert [item["metadata"]["name"] for item in loaded["items"]] == ["node-0", "node-0-gpu"]


def test_json_of_none():
    assert json.loads(text("json", [])) == {
        "apiVersion": "v1",
        "items": [],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }


def test_yaml_of_one():
    assert text("yaml", [NODE], single=True) == (
        'apiVersion: v1\nkind: Node\nmetadata:\n  labels:\n    a: "true"\n    b: <2>\n  name: node-0\n'
    )


def test_yaml_of_several_is_a_list():
    assert text("yaml") == (
        'apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    labels:\n      a: "true"\n'
        "      b: <2>\n    name: node-0\n- apiVersion: resource.k8s.io/v1\n  kind: ResourceSlice\n  metadata:\n"
        '    name: node-0-gpu\nkind: List\nmetadata:\n  resourceVersion: ""\n'
    )


def test_yaml_of_none():
    assert text("yaml", []) == 'apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: ""\n'


def test_several_alone_are_documents():
    documents = list(yaml.safe_load_all(text("yaml", single=True)))
    assert [document["kind"] for document in documents] == ["Node", "ResourceSlice"]


def test_name():
    assert text("name") == "node/node-0\nresourceslice.resource.k8s.io/node-0-gpu\n"
    assert object_name(SLICE) == "resourceslice.resource.k8s.io/node-0-gpu"


def test_tables():
    assert text("", columns=COLUMNS) == "NAME\nnode-0\nnode-0-gpu\n"
    assert text("wide", columns=COLUMNS, headers=False) == "node-0       Node\nnode-0-gpu   ResourceSlice\n"


def test_jsonpath_sees_a_list_and_prints_no_newline():
    assert text("jsonpath={.items[*].kind}") == "Node ResourceSlice"
    assert text("jsonpath={.kind}{.metadata.resourceVersion}") == "List"


def test_jsonpath_of_one_sees_the_object():
    assert text("jsonpath={.metadata.name}", [NODE], single=True) == "node-0"


def test_jsonpath_as_json():
    assert text("jsonpath-as-json={.items[*].kind}") == '[\n    "Node",\n    "ResourceSlice"\n]\n'


def test_templates_may_contain_an_equals_sign():
    assert text('jsonpath={.items[?(@.kind=="Node")].metadata.name}') == "node-0"


def test_files(tmp_path):
    path = tmp_path / "template"
    path.write_text("{.items[0].kind}")
    assert text(f"jsonpath-file={path}") == "Node"
    path.write_text("NAME\nmetadata.name\n")
    assert text(f"custom-columns-file={path}") == "NAME\nnode-0\nnode-0-gpu\n"


def test_custom_columns():
    assert text("custom-columns=N:.metadata.name,K:.kind", headers=False) == (
        "node-0       Node\nnode-0-gpu   ResourceSlice\n"
    )


def test_managed_fields_are_dropped_unless_asked_for():
    assert "managedFields" not in text("json") + text("yaml")
    assert "managedFields" in text("json", show_managed_fields=True)
    assert "managedFields" in text("yaml", show_managed_fields=True)
    assert text("jsonpath={.items[0].metadata.managedFields[0].manager}") == "x"


def test_objects_are_left_alone():
    before = copy.deepcopy(NODE)
    for output in ("json", "yaml", "name", "jsonpath={.items}", "custom-columns=A:.kind"):
        text(output, type_meta=("v1", "Node"))
    assert before == NODE


def test_items_of_a_list_response_get_their_type():
    bare = {"metadata": {"name": "node-1"}}
    assert text("name", [bare], type_meta=("v1", "Node")) == "node/node-1\n"
    assert text("jsonpath={.items[0].apiVersion}", [bare], type_meta=("v1", "Node")) == "v1"
    assert text("name", [SLICE], type_meta=("v1", "Node")) == "resourceslice.resource.k8s.io/node-0-gpu\n"


ALLOWED = "custom-columns,custom-columns-file,json,jsonpath,jsonpath-as-json,jsonpath-file,name,wide,yaml"


@pytest.mark.parametrize("output", ["foo", "JSONPATH={.a}", "json=x", "go-template={{.a}}", "template", "wide=1"])
def test_unknown_format(output):
    with pytest.raises(GhostError) as caught:
        printer(output)
    assert caught.value.message == (
        f'unable to match a printer suitable for the output format "{output}", allowed formats are: {ALLOWED}'
    )
    assert (caught.value.hint is not None) == ("template" in output)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("jsonpath", "template format specified but no template given"),
        ("jsonpath=", "template format specified but no template given"),
        ("jsonpath={.a", "error parsing jsonpath {.a, unclosed action"),
        ("custom-columns", "custom-columns format specified but no custom columns given"),
        ("custom-columns-file=", "custom-columns format specified but no custom columns given"),
        ("jsonpath-file=nope", "error reading --template nope, open nope: no such file or directory"),
        ("custom-columns-file=nope", "error reading template nope, open nope: no such file or directory"),
    ],
)
def test_a_wrong_template_is_found_before_anything_is_printed(output, message):
    with pytest.raises(GhostError) as caught:
        printer(output)
    assert caught.value.message == message


def test_formats_are_sorted():
    assert sorted(FORMATS) == list(FORMATS)


def test_the_plain_table_loads_nothing_it_does_not_need():
    script = "import sys, kubectl_ghost.render.printers, kubectl_ghost.render.age; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    unwanted = {"yaml", "rich", "click", "json", "decimal", "kubectl_ghost.render.yaml_out"}
    assert unwanted.isdisjoint(loaded)
