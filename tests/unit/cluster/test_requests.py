"""Each verb as method, path, query and body."""

import pytest

from kubectl_ghost.cluster import requests
from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_SLICES

LIVE = {"metadata": {"name": "n", "uid": "u-1", "resourceVersion": "7"}}
POD = {"metadata": {"name": "p", "namespace": "ml", "uid": "u-2", "resourceVersion": "8"}}
IDENTITY = {"uid": "u-1", "resourceVersion": "7"}


def test_get_and_list():
    assert requests.get(PODS, "p", "ml").path == "/api/v1/namespaces/ml/pods/p"
    page = requests.list_page(NODES, label_selector="a=b", field_selector="c=d", limit=500, token="t")
    assert page.query == {"labelSelector": "a=b", "fieldSelector": "c=d", "limit": 500, "continue": "t"}
    assert page.big
    assert "PartialObjectMetadataList" in requests.list_page(NODES, metadata_only=True).accept


def test_watch():
    query = requests.watch(NODES, resource_version="5", seconds=3, label_selector="a").query
    assert query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "labelSelector": "a",
        "resourceVersion": "5",
        "timeoutSeconds": 3,
    }


@pytest.mark.parametrize("dry_run", [False, True])
def test_writes_name_their_manager_and_dry_runs_say_so(dry_run):
    made = [
        requests.create(NODES, {}, namespace=None, dry_run=dry_run),
        requests.merge_patch(NODES, LIVE, {}, subresource="status", dry_run=dry_run),
        requests.replace(NODES, LIVE, {}, dry_run=dry_run),
    ]
    assert [request.method for request in made] == ["POST", "PATCH", "PUT"]
    for request in made:
        assert request.query["fieldManager"] == "kubectl-ghost"
        assert request.query.get("dryRun") == {True: "All", False: None}[dry_run]


def test_patches_hold_on_to_the_version_that_was_read():
    patch = {"metadata": {"labels": {"a": None}}}
    request = requests.merge_patch(NODES, LIVE, patch, subresource="status", dry_run=False)
    assert request.path == "/api/v1/nodes/n/status"
    assert request.content_type == "application/merge-patch+json"
    assert request.body == {"metadata": {"labels": {"a": None}, **IDENTITY}}
    assert patch == {"metadata": {"labels": {"a": None}}}


def test_replacements_hold_on_to_the_version_that_was_read():
    body = {"metadata": {"name": "n"}, "spec": {}}
    sent = requests.replace(NODES, LIVE, body, dry_run=False).body
    assert sent == {"metadata": {"name": "n", **IDENTITY}, "spec": {}}


def test_deletes_carry_everything_in_the_body():
    request = requests.delete(PODS, POD, dry_run=True, grace_seconds=0)
    assert (request.method, request.path, request.query) == ("DELETE", "/api/v1/namespaces/ml/pods/p", {})
    assert request.body == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "dryRun": ["All"],
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u-2"},
    }


@pytest.mark.parametrize("grace", [None, 30])
def test_an_eviction_is_of_the_pod_that_was_read(grace):
    request = requests.evict(PODS, POD, dry_run=True, grace_seconds=grace)
    assert (request.method, request.path) == ("POST", "/api/v1/namespaces/ml/pods/p/eviction")
    assert request.query["dryRun"] == "All"
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"], "preconditions": {"uid": "u-2"}}
    assert request.body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "ml"},
        "deleteOptions": options if grace is None else {**options, "gracePeriodSeconds": 30},
    }


def test_collections_need_a_selector():
    request = requests.delete_collection(RESOURCE_SLICES, "a=b", namespace=None, dry_run=False)
    assert request.query == {"labelSelector": "a=b"}
    with pytest.raises(ValueError, match="selector is empty"):
        requests.delete_collection(NODES, " ", namespace=None, dry_run=False)


def test_the_echo_can_be_spared():
    assert "PartialObjectMetadata;" in requests.create(NODES, {}, namespace=None, dry_run=False, echo=False).accept
    assert requests.create(NODES, {}, namespace=None, dry_run=False).accept == "application/json"
