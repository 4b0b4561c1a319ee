import pytest

from kubectl_ghost.cluster import resources as r
from kubectl_ghost.domain.errors import InputError


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (r.NODES, {}, "/api/v1/nodes"),
        (r.NODES, {"name": "node-0", "subresource": "status"}, "/api/v1/nodes/node-0/status"),
        (r.NODES, {"namespace": "ignored", "name": "n"}, "/api/v1/nodes/n"),
        (r.NODES, {"name": "a b?c"}, "/api/v1/nodes/a%20b%3Fc"),
        (r.PODS, {}, "/api/v1/pods"),
        (r.PODS, {"namespace": "ml"}, "/api/v1/namespaces/ml/pods"),
        (
            r.RESOURCE_CLAIMS,
            {"namespace": "ml", "name": "c"},
            "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/c",
        ),
        (r.RESOURCE_SLICES, {"name": "s"}, "/apis/resource.k8s.io/v1/resourceslices/s"),
    ],
)
def test_paths(resource, arguments, path):
    assert resource.path(**arguments) == path


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "node-0/status", "a%2Fb"])
def test_a_name_that_would_lead_elsewhere_is_refused(name):
    with pytest.raises(InputError, match="resource name"):
        r.NODES.path(name=name)


@pytest.mark.parametrize(("resource", "arguments"), [(r.PODS, {"name": "p"}), (r.NODES, {"subresource": "status"})])
def test_half_a_path_is_refused(resource, arguments):
    with pytest.raises(ValueError, match="needs a name"):
        resource.path(**arguments)


def test_names_are_kubectls():
    assert (r.NODES.title, r.NODES.api_version) == ("node", "v1")
    assert r.RESOURCE_SLICES.title == "resourceslice.resource.k8s.io"
    assert r.RESOURCE_SLICES.api_version == "resource.k8s.io/v1"
