"""Merging into a kubeconfig, and taking out again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine import kubeconfig

OWN = {
    "clusters": [{"name": "kwok-a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "contexts": [{"name": "kwok-a", "context": {"cluster": "kwok-a", "user": "kwok-a"}}],
    "users": [{"name": "kwok-a", "user": {}}],
    "current-context": "kwok-a",
}
THEIRS = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "work", "cluster": {"server": "https://example.com"}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
    "users": [{"name": "me", "user": {"token": "secret"}}],
    "current-context": "work",
}


def test_merging_and_unmerging_leaves_what_was_there() -> None:
    merged = kubeconfig.merged_config(THEIRS, OWN)
    assert merged["current-context"] == "kwok-a"
    assert [entry["name"] for entry in merged["contexts"]] == ["work", "kwok-a"]
    assert kubeconfig.unmerged_config(merged, "kwok-a", "work") == THEIRS


def test_merging_twice_is_merging_once() -> None:
    merged = kubeconfig.merged_config(THEIRS, OWN)
    assert kubeconfig.merged_config(merged, OWN) == merged


def test_a_context_chosen_meanwhile_stays() -> None:
    merged = kubeconfig.merged_config(THEIRS, OWN) | {"current-context": "work"}
    assert kubeconfig.unmerged_config(merged, "kwok-a", "gone")["current-context"] == "work"


def test_a_context_before_that_is_gone_is_not_restored() -> None:
    merged = kubeconfig.merged_config(THEIRS, OWN)
    assert kubeconfig.unmerged_config(merged, "kwok-a", "gone")["current-context"] == ""


def test_files_keep_their_mode_and_links(tmp_path: Path) -> None:
    real, link, own = tmp_path / "real", tmp_path / "config", tmp_path / "own"
    real.write_text(yaml.safe_dump(THEIRS))
    real.chmod(0o640)
    link.symlink_to(real)
    own.write_text(yaml.safe_dump(OWN))
    target = kubeconfig.users_kubeconfig(own, {"KUBECONFIG": f"{own}:{link}"})
    assert kubeconfig.merge(own, target) == "work"
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    kubeconfig.unmerge("kwok-a", target, "work")
    assert yaml.safe_load(real.read_text()) == THEIRS


def test_without_a_kubeconfig_one_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text(yaml.safe_dump(OWN))
    target = kubeconfig.users_kubeconfig(own, {"KUBECONFIG": str(own), "HOME": str(tmp_path / "home")})
    assert kubeconfig.merge(own, target) == ""
    assert target == tmp_path / "home" / ".kube" / "config"
    assert target.stat().st_mode & 0o777 == 0o600


def test_something_else_is_no_kubeconfig(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("a: [")
    with pytest.raises(GhostError, match="is no kubeconfig"):
        kubeconfig.read(broken)
