"""`-o`: from the word the user gave to the function that prints objects that way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.render.columns import Column, table

Printer = Callable[[Sequence[Json]], Iterator[str]]
"""Objects to chunks of text, to be written as they are."""

FORMATS = (
    "custom-columns",
    "custom-columns-file",
    "json",
    "jsonpath",
    "jsonpath-as-json",
    "jsonpath-file",
    "name",
    "wide",
    "yaml",
)
"""Every format, in the order in which kubectl's error names them."""
_GO_TEMPLATES = ("go-template", "go-template-file", "template", "templatefile")
_JSONPATH = ("jsonpath", "jsonpath-as-json", "jsonpath-file")
_CUSTOM_COLUMNS = ("custom-columns", "custom-columns-file")


def printer(
    output: str,
    *,
    columns: Sequence[Column] = (),
    headers: bool = True,
    single: bool = False,
    show_managed_fields: bool = False,
    type_meta: tuple[str, str] | None = None,
) -> Printer:
    """Choose the printer for `-o output`.

    Args:
        output: one of FORMATS, with `=VALUE` where it takes one; empty for the plain table.
        columns: of the plain and the wide table.
        headers: False for `--no-headers`; concerns tables alone.
        single: print objects by themselves, YAML documents separated by `---`, rather than in a List: for what was
            asked for by name, and for what a command writes one after another.
        show_managed_fields: keep `metadata.managedFields` in JSON and YAML.
        type_meta: apiVersion and kind of objects that lack them, as the items of a list response do.

    Raises:
        InputError: the format is unknown, lacks its value, or its template is wrong; before anything is printed.
    """
    word, equals, value = output.partition("=")
    if output in ("", "wide"):
        return lambda rows: table(columns, rows, headers=headers, wide=output == "wide")
    # As in kubectl, templates and custom columns may look at managedFields.
    prepare = _preparation(type_meta, managed_fields=show_managed_fields or bool(equals))
    if output.lower() == "json":
        return lambda objects: _json(map(prepare, objects), single)
    if output.lower() == "yaml":
        return lambda objects: _yaml(map(prepare, objects), single)
    if output.lower() == "name":
        return lambda objects: (f"{object_name(prepare(item))}\n" for item in objects)
    if word in _JSONPATH:
        return _jsonpath(word, value, prepare, single)
    if word in _CUSTOM_COLUMNS:
        return _custom_columns(word, value, prepare, headers)
    raise _unknown(output)


def object_name(item: Json) -> str:
    """An object as kubectl refers to it: `node/x`, `resourceslice.resource.k8s.io/x`."""
    group, slash, _ = item["apiVersion"].partition("/")
    kind = item["kind"].lower()
    return f"{kind}.{group}/{item['metadata']['name']}" if slash else f"{kind}/{item['metadata']['name']}"


def _unknown(output: str) -> InputError:
    import json

    message = f"unable to match a printer suitable for the output format {json.dumps(output, ensure_ascii=False)}"
    hint = None
    if output.partition("=")[0] in _GO_TEMPLATES:
        hint = "go templates need kubectl itself: pipe the output of -o json, or use -o jsonpath=TEMPLATE"
    return InputError(f"{message}, allowed formats are: {','.join(FORMATS)}", hint)


def _preparation(type_meta: tuple[str, str] | None, managed_fields: bool) -> Callable[[Json], Json]:
    """What is done to a copy of an object before it is printed."""

    def prepare(item: Json) -> Json:
        if type_meta is not None and "kind" not in item:
            item = {"apiVersion": type_meta[0], "kind": type_meta[1], **item}
        metadata = item.get("metadata")
        if managed_fields or not metadata or "managedFields" not in metadata:
            return item
        kept = {key: value for key, value in metadata.items() if key != "managedFields"}
        return {**item, "metadata": kept}

    return prepare


def _list_of(items: Sequence[Json]) -> Json:
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}


def _json(objects: Iterator[Json], single: bool) -> Iterator[str]:
    from kubectl_ghost.render import json_out

    if single:
        for item in objects:
            yield json_out.indented(item) + "\n"
        return
    # An item at a time, so that thousands of nodes are never one string.
    before, _, after = json_out.indented(_list_of([{}])).partition("{}")
    lead = before
    for item in objects:
        yield lead + json_out.indented(item, level=2)
        lead = ",\n" + before.rpartition("\n")[2]
    yield after + "\n" if lead != before else json_out.indented(_list_of([])) + "\n"


def _yaml(objects: Iterator[Json], single: bool) -> Iterator[str]:
    from kubectl_ghost.render import yaml_out

    if single:
        yield from yaml_out.dump_all(objects)
        return
    head, tail = yaml_out.dump(_list_of([])).split(" []\n")
    lead = head + "\n"
    for item in objects:
        yield lead + yaml_out.dump([item])
        lead = ""
    yield head + " []\n" + tail if lead else tail


def _jsonpath(word: str, value: str, prepare: Callable[[Json], Json], single: bool) -> Printer:
    from kubectl_ghost.render import jsonpath

    if not value:
        raise InputError("template format specified but no template given")
    template = _read("error reading --template", value) if word == "jsonpath-file" else value
    path = jsonpath.parse(template)
    render = path.render_json if word == "jsonpath-as-json" else path.render

    def run(objects: Sequence[Json]) -> Iterator[str]:
        prepared = [prepare(item) for item in objects]
        return map(render, prepared if single else [_list_of(prepared)])

    return run


def _custom_columns(word: str, value: str, prepare: Callable[[Json], Json], headers: bool) -> Printer:
    from kubectl_ghost.render import custom_columns

    if word == "custom-columns-file" and value:
        chosen = custom_columns.parse_template(_read("error reading template", value))
    else:
        chosen = custom_columns.parse_spec(value)
    return lambda objects: custom_columns.custom_table(chosen, [prepare(item) for item in objects], headers=headers)


def _read(failure: str, path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{failure} {path}, open {path}: {reason}") from error
