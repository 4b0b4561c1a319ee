"""The law of the room: nothing is written but past the guard, and a reader writes nothing."""

import inspect

import pytest

from kubectl_ghost.cluster import errors
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.cluster.writes import Writer, merged
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GuardRefusal

LIVE = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "7", "labels": {"a": "1", "b": "2"}}}
NODE = {"metadata": {"name": "owner"}}
BODY = {"metadata": {"name": "n"}, "spec": {}}
POD = {"metadata": {"name": "p", "namespace": "ml", "uid": "u"}}
PATCH = {"metadata": {"labels": {"a": None}}}
CALLS = {
    "create": lambda writer: writer.create(NODES, BODY, node=NODE),
    "patch": lambda writer: writer.patch(NODES, LIVE, PATCH, node=NODE, subresource="status"),
    "replace": lambda writer: writer.replace(NODES, LIVE, BODY, node=NODE),
    "delete": lambda writer: writer.delete(NODES, LIVE, node=NODE),
    "evict": lambda writer: writer.evict(POD, node=NODE),
    "delete_collection": lambda writer: writer.delete_collection(NODES, "a=1", [LIVE], nodes=[NODE]),
}
SEEN_BY_GUARD = {
    "create": ("create", None, BODY),
    "patch": ("patch", LIVE, PATCH),
    "replace": ("replace", LIVE, BODY),
    "delete": ("delete", LIVE, None),
    "evict": ("delete", POD, None),
    "delete_collection": ("delete", LIVE, None),
}


class Recorder:
    def __init__(self):
        self.calls = []

    def __call__(self, verb, resource, *, live, body, node):
        assert resource is (PODS if live is POD else NODES)
        assert node is NODE
        self.calls.append((verb, live, body))


def refuse(verb, resource, *, live, body, node):
    raise GuardRefusal("no")


def public(kind):
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


def test_every_write_is_in_these_tests():
    assert public(Writer) - public(Reader) == set(CALLS)


@pytest.mark.parametrize("dry_run", DryRun)
@pytest.mark.parametrize("verb", CALLS)
def test_every_write_passes_the_guard(server, connect, verb, dry_run):
    guard = Recorder()
    CALLS[verb](Writer(connect(), guard, dry_run))
    assert guard.calls == [SEEN_BY_GUARD[verb]]
    assert len(server.seen) == (dry_run is not DryRun.CLIENT)


@pytest.mark.parametrize("dry_run", DryRun)
@pytest.mark.parametrize("verb", CALLS)
def test_what_the_guard_refuses_is_not_sent(server, connect, verb, dry_run):
    with pytest.raises(GuardRefusal):
        CALLS[verb](Writer(connect(), refuse, dry_run))
    assert server.seen == []


@pytest.mark.parametrize("verb", CALLS)
def test_a_reader_has_no_way_to_write(connect, verb):
    assert not hasattr(Reader(connect()), verb)


@pytest.mark.parametrize("verb", CALLS)
def test_a_server_dry_run_says_so_to_the_server(server, connect, verb):
    CALLS[verb](Writer(connect(), Recorder(), DryRun.SERVER))
    request = server.seen[0]
    assert "dryRun=All" in request.path or request.json()["dryRun"] == ["All"]


def test_a_client_dry_run_returns_what_would_be(connect):
    writer = Writer(connect(), Recorder(), DryRun.CLIENT)
    assert CALLS["create"](writer) == BODY
    assert CALLS["patch"](writer)["metadata"]["labels"] == {"b": "2"}
    assert writer.patch(NODES, BODY, {"spec": {"a": 1}}, node=NODE)["spec"] == {"a": 1}, "made by a dry run: no uid yet"
    writer.delete(NODES, BODY, node=NODE)
    assert LIVE["metadata"]["labels"] == {"a": "1", "b": "2"}


def test_a_collection_needs_a_selector_and_every_object_is_guarded(server, connect):
    guard = Recorder()
    writer = Writer(connect(), guard)
    writer.delete_collection(NODES, "a=1", [LIVE, LIVE], nodes=[NODE, NODE])
    assert len(guard.calls) == 2
    with pytest.raises(GuardRefusal, match="selector is empty"):
        writer.delete_collection(NODES, " ", [LIVE], nodes=[NODE])
    writer.delete_collection(NODES, "a=1", [])
    assert len(server.seen) == 1


@pytest.mark.parametrize("verb", ["delete", "evict"])
def test_deleting_what_is_gone_is_fine(server, connect, status, verb):
    server.handle = lambda _: status(404, "NotFound", "gone")
    CALLS[verb](Writer(connect(), Recorder()))
    server.handle = lambda _: status(409, "Conflict", "another uid")
    with pytest.raises(errors.Conflict):
        CALLS[verb](Writer(connect(), Recorder()))


def test_what_a_budget_blocks_is_told_at_once(server, connect, status):
    causes = [{"reason": "DisruptionBudget", "message": "The disruption budget web is still being processed."}]
    server.handle = lambda _: status(429, "TooManyRequests", "no", {"Retry-After": "10"}, causes=causes)
    waited = []
    with pytest.raises(errors.Blocked) as caught:
        CALLS["evict"](Writer(connect(sleep=waited.append), Recorder()))
    assert (caught.value.budget, waited, len(server.seen)) == ("web", [], 1)


def test_a_busy_server_is_asked_again_for_an_eviction(server, connect, status, answer):
    server.handle = lambda _: answer() if len(server.seen) > 1 else status(429, "X", "busy", {"Retry-After": "1"})
    CALLS["evict"](Writer(connect(), Recorder()))
    assert len(server.seen) == 2


@pytest.mark.parametrize("verb", ["create", "patch", "replace"])
def test_an_answer_that_is_no_object_names_the_server(server, connect, answer, verb):
    server.handle = lambda _: answer(b"<html>")
    with pytest.raises(errors.NotKubernetes, match=r"the server's answer is not JSON: is http://127.0.0.1:\d+ a Kub"):
        CALLS[verb](Writer(connect(), Recorder()))


def test_a_namespace_comes_from_the_object_or_the_caller(server, connect):
    writer = Writer(connect(), lambda *_, **__: None)
    writer.create(PODS, {"metadata": {"namespace": "a"}}, namespace="b")
    writer.create(PODS, {"metadata": {}}, namespace="b")
    assert [seen.path.split("?")[0] for seen in server.seen] == [
        "/api/v1/namespaces/a/pods",
        "/api/v1/namespaces/b/pods",
    ]
    with pytest.raises(ValueError, match="needs a namespace"):
        writer.create(PODS, {"metadata": {}})


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": "foo"}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ],
)
def test_merge_patches_as_in_the_rfc(target, patch, result):
    assert merged(target, patch) == result


@pytest.mark.parametrize(("options", "whole"), [({}, False), ({"whole": True}, True), ({"rehearse": True}, True)])
def test_without_echo_what_is_created_comes_back_as_metadata_unless_asked_for(server, connect, options, whole):
    Writer(connect(), Recorder(), echo=False).create(NODES, BODY, node=NODE, **options)
    assert ("PartialObjectMetadata" in server.seen[-1].headers["Accept"][0]) is not whole
    Writer(connect(), Recorder()).create(NODES, BODY, node=NODE)
    assert "PartialObjectMetadata" not in server.seen[-1].headers["Accept"][0]
