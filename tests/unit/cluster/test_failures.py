"""Answers of the server in kubectl's words, and what to do about each."""

import json

import pytest

from kubectl_ghost.cluster import errors, failures, permissions
from kubectl_ghost.domain.errors import GhostError

CANNOT = (
    'nodes is forbidden: User "joe" cannot create resource "nodes" in API group "" at the cluster scope'  # the server's
)


def made(status, message=None, reason="", method="GET", path="/api/v1/nodes/x", **details):
    body = b"oops"
    if message is not None:
        answer = {"kind": "Status", "code": status, "reason": reason, "message": message, "details": details}
        body = json.dumps(answer).encode()
    return failures.from_answer(status, body, method, path)


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (410, "Gone", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (403, "Forbidden", errors.Forbidden),
        (401, "Unauthorized", errors.Unauthorized),
        (500, "InternalError", errors.ServerError),
        (504, "Timeout", errors.ServerError),
        (400, "BadRequest", errors.ApiError),
    ],
)
def test_kinds(status, reason, kind):
    error = made(status, "m", reason)
    assert type(error) is kind
    assert (error.status, error.reason, error.method, error.path) == (status, reason, "GET", "/api/v1/nodes/x")
    assert isinstance(error, GhostError)


@pytest.mark.parametrize(
    ("said", "budget"),
    [
        ("The disruption budget web needs 2 healthy pods and has 2 currently", "web"),
        ("The disruption budget web is still being processed by the server.", "web"),
        ("no more than one at a time", "no more than one at a time"),
        ("The disruption budget ", "The disruption budget "),
    ],
)
def test_an_eviction_that_a_budget_blocks_names_it(said, budget):
    causes = [{"reason": "DisruptionBudget", "message": said}]
    error = made(429, "Cannot evict pod", "TooManyRequests", causes=causes)
    assert type(error) is errors.Blocked
    assert error.budget == budget
    assert error.cause == said.removesuffix(".")


def test_a_busy_server_is_no_budget():
    assert type(made(429, "busy", "TooManyRequests", causes=[{"reason": "Other"}])) is errors.TooManyRequests


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (made(404, 'nodes "x" not found', "NotFound"), 'Error from server (NotFound): nodes "x" not found'),
        (made(401, "Unauthorized", "Unauthorized"), "You must be logged in to the server (Unauthorized)"),
        (made(404), "Error from server (NotFound): the server could not find the requested resource"),
        (made(502), "Error from server: oops"),
        (made(503), "Error from server (ServiceUnavailable): oops"),
        (
            made(422, "long", "Invalid", kind="Node", name="x", causes=[{"field": "spec.a", "message": "bad"}]),
            'The Node "x" is invalid: spec.a: bad',
        ),
        (
            made(422, "l", "Invalid", kind="Node", name="x", causes=[{"message": "a"}, {"field": "b", "message": "c"}]),
            'The Node "x" is invalid: \n* a\n* b: c',
        ),
    ],
)
def test_words(error, message):
    assert error.message == message


@pytest.mark.parametrize(
    "odd",
    [
        {"code": "x"},
        {"code": [{}]},
        {"details": 1.5},
        {"details": {"causes": 1}},
        {"details": {"causes": [-1]}},
        {"reason": {}, "message": []},
    ],
)
def test_a_status_of_the_wrong_form_is_still_said(odd):
    body = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "nope", **odd}
    error = failures.from_answer(422, json.dumps(body).encode(), "GET", "/api/v1/nodes")
    assert type(error) is errors.Invalid
    assert error.status == 422
    assert "Error from server (Invalid): " in error.message


def test_who_prints_without_the_word_error():
    assert made(404).bare
    assert errors.Unreachable("x").bare
    assert not made(401).bare


@pytest.mark.parametrize(
    ("message", "method", "path", "hint"),
    [
        (
            CANNOT,
            "POST",
            "/api/v1/nodes",
            'needs verb "create" on resource "nodes" (cluster scope): '
            "kubectl create clusterrole ghost-create-nodes --verb=create --resource=nodes && "
            "kubectl create clusterrolebinding ghost-create-nodes --clusterrole=ghost-create-nodes --user=joe",
        ),
        (
            'x is forbidden: User "system:serviceaccount:ns:sa" cannot list resource "resourceclaims" in API group '
            '"resource.k8s.io" in the namespace "ml"',
            "GET",
            "/",
            'needs verb "list" on resource "resourceclaims" in group "resource.k8s.io" (namespace "ml"): '
            "kubectl create role ghost-list-resourceclaims -n ml --verb=list --resource=resourceclaims.resource.k8s.io "
            "&& kubectl create rolebinding ghost-list-resourceclaims -n ml --role=ghost-list-resourceclaims "
            "--serviceaccount=ns:sa",
        ),
        ('pods "p" is forbidden: exceeded quota: gpus', "POST", "/api/v1/namespaces/ml/pods", None),
    ],
)
def test_a_refusal_names_the_missing_permission(message, method, path, hint):
    assert made(403, message, "Forbidden", method, path).hint == hint


@pytest.mark.parametrize(
    ("method", "path", "permission"),
    [
        ("GET", "/api/v1/nodes", ("list", "nodes", "", "")),
        ("GET", "/api/v1/nodes/n", ("get", "nodes", "", "")),
        ("PATCH", "/api/v1/nodes/n/status", ("patch", "nodes/status", "", "")),
        ("DELETE", "/api/v1/namespaces/ml/pods", ("deletecollection", "pods", "", "ml")),
        ("PUT", "/apis/apps/v1/namespaces/ml/deployments/d", ("update", "deployments", "apps", "ml")),
        ("GET", "/api/v1/namespaces/ml", ("get", "namespaces", "", "")),
        ("GET", "/version", None),
    ],
)
def test_permissions_from_the_request(method, path, permission):
    found = permissions.missing("", method, path)
    assert (found and (found.verb, found.resource, found.group, found.namespace)) == permission
