"""A control plane with one real node for the session: a pod that is put on it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_ghost.engine.kwokctl import Cluster
from kubectl_ghost.manifests.agent import DEFAULT_IMAGE
from tests.e2e.conftest import AUDIT_EVERYTHING
from tests.e2e.fleet import objects
from tests.e2e.support import E2ECluster, Ghost, eventually
from tests.realnode.harness.machine import real_node
from tests.realnode.harness.places import NODE_NAME


@pytest.fixture(scope="session")
def booted() -> Iterator[Cluster]:
    """The control plane and the node, taken down whatever happens."""
    with real_node(DEFAULT_IMAGE, AUDIT_EVERYTHING, print) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster(booted: Cluster, tmp_path_factory: pytest.TempPathFactory) -> E2ECluster:
    """The cluster as tests reach it, with a user of its own."""
    user = Ghost(tmp_path_factory.mktemp("user"))
    user.home.mkdir()
    return E2ECluster(booted.folder.name, user, booted.folder.kubeconfig, Path(booted.record.bin_dir))


@pytest.fixture
def empty(cluster: E2ECluster) -> E2ECluster:
    """The cluster with nothing on it but the real node; what a test leaves is swept before the next."""
    sweep(cluster)
    return cluster


def sweep(cluster: E2ECluster) -> None:
    """Delete workloads, claims, every pool, and nodes that tests made by hand; the real node stays."""
    cluster.kubectl(
        "delete", "deployments,jobs,daemonsets,pods,resourceclaimtemplates", "--all", "--force", "--wait=true"
    )
    cluster.ghost("metrics", "delete")
    cluster.ghost("delete-pool", "--all")
    others = [node["metadata"]["name"] for node in objects(cluster, "nodes") if node["metadata"]["name"] != NODE_NAME]
    if others:
        cluster.kubectl("delete", "node", *others, "--wait=true")
    eventually(lambda: not cluster.kubectl("get", "resourceclaims,pods", "-o", "name").stdout)
