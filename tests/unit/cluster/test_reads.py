"""Lists in pages, versions, discovery, watches."""

import itertools
import threading

import pytest

from kubectl_ghost.cluster import errors, watching
from kubectl_ghost.cluster.reads import Listing, Reader
from kubectl_ghost.cluster.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_SLICES, Resource

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", False)


@pytest.fixture
def reader(connect):
    return Reader(connect())


def named(*names):
    return [{"metadata": {"name": name}} for name in names]


def page(answer, names, token="", version="10"):
    return answer({"metadata": {"resourceVersion": version, "continue": token}, "items": named(*names)})


def test_pages_become_one_list(server, reader, answer):
    server.handle = lambda seen: page(answer, ["b"]) if "continue=t1" in seen.path else page(answer, ["a"], "t1")
    listing = reader.list(NODES, label_selector="x=y", chunk=1)
    assert [item["metadata"]["name"] for item in listing.items] == ["a", "b"]
    assert list(listing.items[0]) == ["apiVersion", "kind", "metadata"]
    assert (listing.items[0]["apiVersion"], listing.items[0]["kind"]) == ("v1", "Node")
    assert listing.resource_version == "10"
    assert [seen.path for seen in server.seen] == [
        "/api/v1/nodes?labelSelector=x%3Dy&limit=1",
        "/api/v1/nodes?labelSelector=x%3Dy&limit=1&continue=t1",
    ]


def test_an_expired_page_starts_over_all_at_once(server, reader, answer, status):
    def expire(seen):
        if "continue" in seen.path:
            return status(410, "Expired", "too old")
        if "limit" in seen.path:
            return page(answer, ["a"], "t1")
        return page(answer, ["a", "b"], version="11")

    server.handle = expire
    listing = reader.list(PODS, namespace="ml")
    assert (len(listing.items), listing.resource_version) == (2, "11")
    assert server.seen[-1].path == "/api/v1/namespaces/ml/pods"


def test_all_at_once(server, reader, answer):
    server.handle = lambda _: answer({"metadata": {}, "items": None})
    assert reader.list(NODES, chunk=0) == Listing()
    assert server.seen[0].path == "/api/v1/nodes"


def test_metadata_alone_still_has_the_type(server, reader, answer):
    item = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}
    server.handle = lambda _: answer({"metadata": {}, "items": [item]})
    assert reader.list(RESOURCE_SLICES, metadata_only=True).items == [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "a"}}
    ]
    assert "PartialObjectMetadataList" in server.seen[0].headers["Accept"][0]


def test_finding_nothing_is_none_and_getting_nothing_an_error(server, reader, status):
    server.handle = lambda _: status(404, "NotFound", 'nodes "x" not found')
    assert reader.find(NODES, "x") is None
    with pytest.raises(errors.NotFound, match=r'Error from server \(NotFound\): nodes "x" not found'):
        reader.get(NODES, "x")


def test_discovery_is_asked_once(server, reader, answer, status):
    def discover(seen):
        if seen.path == "/apis/resource.k8s.io/v1":
            return answer({"resources": [{"name": "resourceslices"}]})
        return status(404, "NotFound", "not here")

    server.handle = discover
    for _ in range(2):
        assert reader.served(RESOURCE_SLICES)
        assert not reader.served(WIDGETS)
    assert len(server.seen) == 2


@pytest.mark.parametrize(("minor", "expected"), [("36", (1, 36)), ("34+", (1, 34)), ("", (1, 0))])
def test_versions_are_digits(server, reader, answer, minor, expected):
    server.handle = lambda _: answer({"major": "1", "minor": minor})
    assert reader.server_version() == expected


def test_the_version_in_full_and_asked_once(server, reader, answer):
    server.handle = lambda _: answer({"major": "1", "minor": "34+", "gitVersion": "v1.34.2-gke.100"})
    assert reader.git_version() == "v1.34.2-gke.100"
    assert reader.server_version() == (1, 34)
    assert len(server.seen) == 1


def test_a_server_without_a_version_is_no_api_server(server, reader, answer):
    server.handle = lambda _: answer({"gitVersion": None})
    with pytest.raises(errors.NotKubernetes, match=r"no Kubernetes version: is http://127.0.0.1:\d+ a Kubernetes API"):
        reader.git_version()


READS = {
    "get": lambda reader: reader.get(NODES, "n"),
    "list": lambda reader: reader.list(NODES),
    "served": lambda reader: reader.served(DEVICE_CLASSES),
    "version": lambda reader: reader.git_version(),
    "watch": lambda reader: next(reader.watch(NODES, resource_version="1")),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    "body", [b"<html>\nlog in here\n</html>\n", b'{"items":\n', b"\xff\n", b"[1]\n", b"null\n", b"[" * 100_000 + b"\n"]
)
def test_an_answer_of_something_else_names_the_server(server, reader, answer, read, body):
    server.handle = lambda _: answer(body)
    with pytest.raises(
        errors.NotKubernetes, match=r"not (JSON|a JSON object): is http://127.0.0.1:\d+ a Kuber"
    ) as caught:
        READS[read](reader)
    assert not caught.value.bare
    assert "kubectl config view" in caught.value.hint


@pytest.mark.parametrize("body", [{"items": {}}, {"items": [1]}, {"items": "x"}])
def test_a_list_of_something_else_is_said(server, reader, answer, body):
    server.handle = lambda _: answer(body)
    with pytest.raises(errors.NotKubernetes, match="the server's answer is not a list of nodes"):
        reader.list(NODES)


@pytest.mark.parametrize("body", [{}, {"resources": {}}, {"resources": [1]}])
def test_a_discovery_of_something_else_is_said(server, reader, answer, body):
    server.handle = lambda _: answer(body)
    with pytest.raises(errors.NotKubernetes, match="the server's answer is not a list of resources"):
        reader.served(NODES)


def test_a_list_without_metadata_is_whole(server, reader, answer):
    server.handle = lambda _: answer({"metadata": True, "items": []})
    assert reader.list(NODES) == Listing()


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"type": "ADDED"},
        {"type": "ADDED", "object": {}},
        {"type": 1, "object": {}},
        {"type": "ADDED", "object": {"metadata": 1}},
    ],
)
def test_an_event_of_something_else_is_said(server, reader, answer, line):
    server.handle = lambda _: answer(lines=[line])
    with pytest.raises(errors.NotKubernetes, match="a watch's event"):
        next(reader.watch(NODES, resource_version="1"))


def test_a_name_that_is_no_text_goes_out_as_it_came(server, reader, answer):
    server.handle = lambda _: answer({"items": []})
    reader.get(NODES, "a\udcff?b")
    reader.list(NODES, label_selector="a=\udcff")
    assert [seen.path for seen in server.seen] == [
        "/api/v1/nodes/a%FF%3Fb",
        "/api/v1/nodes?labelSelector=a%3D%FF&limit=500",
    ]


def event(kind, name, version):
    return {"type": kind, "object": {"metadata": {"name": name, "resourceVersion": version}}}


def test_a_watch_goes_on_where_it_stopped(server, reader, answer, status):
    script = [
        answer(lines=[event("ADDED", "a", "11"), event("BOOKMARK", "", "15")]),
        answer(lines=[event("DELETED", "a", "16")]),
        answer(lines=[{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}]),
    ]
    server.handle = lambda _: script.pop(0)
    changes = reader.watch(NODES, resource_version="10", field_selector="f=1")
    assert [(kind, item["metadata"]["name"]) for kind, item in itertools.islice(changes, 2)] == [
        ("ADDED", "a"),
        ("DELETED", "a"),
    ]
    with pytest.raises(errors.Gone):
        next(changes)
    versions = [request.path.partition("resourceVersion=")[2] for request in server.seen]
    assert versions == ["10", "15", "16"]


def test_a_watch_ends_with_its_time(server, reader, answer, monkeypatch):
    monkeypatch.setattr(watching, "_PAUSE", 0.01)
    server.handle = lambda _: answer(lines=[])
    assert list(reader.watch(NODES, resource_version="1", timeout=0.05)) == []
    assert "timeoutSeconds=1" in server.seen[0].path


def test_leaving_a_watch_closes_its_connection(server, reader, answer):
    server.handle = lambda _: answer(lines=[event("ADDED", "a", "1")] * 3)
    changes = reader.watch(NODES, resource_version="0")
    assert next(changes)[0] == "ADDED"
    changes.close()
    reader.transport.request("GET", "/x")
    assert server.connections == 2


def once(reader, seconds=60.0):
    return reader.watch_once(NODES, resource_version="10", seconds=seconds)


def test_one_watch_begins_with_the_word_that_it_was_granted(server, reader, answer):
    server.handle = lambda _: answer(lines=[event("ADDED", "a", "11"), event("BOOKMARK", "", "15")])
    seen = [(kind, item["metadata"]["resourceVersion"]) for kind, item in once(reader)]
    assert seen == [("BOOKMARK", "10"), ("ADDED", "11"), ("BOOKMARK", "15")]
    assert len(server.seen) == 1
    assert "timeoutSeconds=60" in server.seen[0].path


def test_one_watch_that_is_not_granted_says_so_first(server, reader, answer):
    server.handle = lambda _: answer({"kind": "Status", "code": 410, "reason": "Expired"}, status=410)
    with pytest.raises(errors.Gone):
        next(once(reader))


def test_one_watch_that_breaks_off_is_no_end(server, reader, answer):
    server.handle = lambda _: answer(lines=[event("ADDED", "a", "11")], cut_off=True)
    changes = once(reader)
    assert [kind for kind, _ in itertools.islice(changes, 2)] == ["BOOKMARK", "ADDED"]
    with pytest.raises(errors.Unreachable):
        next(changes)


def test_a_server_that_falls_silent_in_a_watch_is_gone(server, reader, answer, monkeypatch):
    monkeypatch.setattr(watching, "_GRACE", 0.05)
    silent = threading.Event()

    def never(_):
        silent.wait(30)
        return answer(lines=[])

    server.handle = never
    with pytest.raises(errors.Timeout):
        next(once(reader, seconds=0.05))
    silent.set()
