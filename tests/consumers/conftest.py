"""The rule file as the tool prints it, and the real cluster of the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import cluster, empty, user
from tests.e2e.support import Ghost

__all__ = ["cluster", "empty", "rules", "user"]


@pytest.fixture(scope="session")
def rules(user: Ghost, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The alert rules with dcgm-exporter's own labels."""
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    path.write_text(user("metrics", "rules").stdout, encoding="utf-8")
    return path
