"""The rule file of the tool, written once, and the real cluster of the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ghost.manifests.prometheus_rules import rule_file
from kubectl_ghost.manifests.series_labels import SeriesLabels
from kubectl_ghost.render.yaml_out import dump
from tests.e2e.conftest import cluster, empty, user

__all__ = ["cluster", "empty", "user"]


@pytest.fixture(scope="session")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The alert rules with dcgm-exporter's own labels."""
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    path.write_text(dump(rule_file(SeriesLabels())), encoding="utf-8")
    return path
