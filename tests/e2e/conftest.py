"""A real cluster for the end-to-end suites, made by the tool's own `cluster up`.

Every session (each worker of pytest-xdist is one) makes its own under a temporary folder and deletes it, whatever
happened in between. Binaries come from the user's cache or KUBECTL_GHOST_BIN_DIR, and are built if there are none.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from kubectl_ghost.engine.binaries import chosen_bin_dir, require_binaries
from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.versions import version_set
from tests.e2e.support import E2ECluster, Ghost, eventually, running_cluster

AUDIT_EVERYTHING = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: Metadata
"""


@pytest.fixture(scope="session")
def user(tmp_path_factory: pytest.TempPathFactory) -> Ghost:
    """A user with nothing but binaries: an empty home, and state of their own."""
    # Built here if at all, since go keeps its modules in the home of the one who builds.
    require_binaries(version_set(), Folders.of_user(), print, chosen_bin_dir(None))
    ghost = Ghost(tmp_path_factory.mktemp("user"))
    ghost.home.mkdir()
    return ghost


@pytest.fixture(scope="session")
def cluster(user: Ghost) -> Iterator[E2ECluster]:
    """The session's cluster, every request to it written to audit.log."""
    policy = user.root / "audit-policy.yaml"
    policy.write_text(AUDIT_EVERYTHING, encoding="utf-8")
    yield from running_cluster(user, "--audit-policy", str(policy))


@pytest.fixture
def empty(cluster: E2ECluster) -> Iterator[E2ECluster]:
    """The session's cluster with nothing on it, before and after."""
    sweep(cluster)
    yield cluster
    sweep(cluster)


def sweep(cluster: E2ECluster) -> None:
    """Delete workloads, claims and every pool, and the nodes that tests made by hand."""
    cluster.kubectl(
        "delete", "deployments,jobs,daemonsets,pods,resourceclaimtemplates", "--all", "--force", "--wait=true"
    )
    cluster.ghost("delete-pool", "--all")
    cluster.kubectl("delete", "nodes", "--all", "--wait=true")
    eventually(lambda: not cluster.kubectl("get", "resourceclaims,pods", "-o", "name").stdout)


@pytest.fixture
def kwok_asleep(cluster: E2ECluster) -> Iterator[None]:
    """A cluster whose kwok controller is not running for a while."""
    pid = cluster.pid_of("kwok-controller")
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)
