"""A real cluster for the end-to-end suites, made by the tool's own `cluster up`.

Every session (each worker of pytest-xdist is one) makes its own under a temporary folder and deletes it, whatever
happened in between. Binaries come from the user's cache or KUBECTL_GHOST_BIN_DIR, and are built if there are none.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.support import E2ECluster, Ghost, running_cluster

AUDIT_EVERYTHING = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: Metadata
"""


@pytest.fixture(scope="session")
def user(tmp_path_factory: pytest.TempPathFactory) -> Ghost:
    """A user without anything: an empty home, and state of their own."""
    ghost = Ghost(tmp_path_factory.mktemp("user"))
    ghost.home.mkdir()
    return ghost


@pytest.fixture(scope="session")
def cluster(user: Ghost) -> Iterator[E2ECluster]:
    """The session's cluster, every request to it written to audit.log."""
    policy = user.root / "audit-policy.yaml"
    policy.write_text(AUDIT_EVERYTHING, encoding="utf-8")
    yield from running_cluster(user, "--audit-policy", str(policy))
