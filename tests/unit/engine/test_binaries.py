"""Finding a whole set in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine.binaries import faults_of, find_binaries
from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.versions import VersionSet
from tests.unit.engine.conftest import WriteSet


@pytest.fixture(autouse=True)
def _empty_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def test_a_whole_set_has_no_faults(tmp_path: Path, versions: VersionSet, write_set: WriteSet) -> None:
    assert faults_of(write_set(tmp_path / "bin"), versions) == []


def test_faults_name_the_binary(tmp_path: Path, versions: VersionSet, write_set: WriteSet) -> None:
    folder = write_set(tmp_path / "bin", others={"etcd": "3.5.0"})
    assert faults_of(folder, versions) == [f"etcd is 3.5.0, not {versions.etcd}"]
    (folder / "kwok").unlink()
    assert faults_of(folder, versions) == ["kwok is missing"]


def test_a_given_folder_is_used_or_refused_never_passed_over(
    tmp_path: Path, versions: VersionSet, folders: Folders, write_set: WriteSet
) -> None:
    write_set(folders.binaries(versions.key))
    given = write_set(tmp_path / "given", missing=("kube-scheduler",))
    with pytest.raises(GhostError, match="kube-scheduler is missing"):
        find_binaries(versions, folders, given)
    write_set(given)
    found = find_binaries(versions, folders, given)
    assert found is not None
    assert found["kwokctl"] == str(given / "kwokctl")


def test_the_cache_is_asked_for_versions_once(versions: VersionSet, folders: Folders, write_set: WriteSet) -> None:
    cache = write_set(folders.binaries(versions.key))
    for _ in range(2):
        assert find_binaries(versions, folders) is not None
    assert len((cache / "asked").read_text().splitlines()) == len(versions.binaries)
    write_set(cache, others={"kubectl": "1.2.3"})
    assert find_binaries(versions, folders) is None


def test_a_set_on_path_must_be_whole_in_one_folder(
    tmp_path: Path, versions: VersionSet, folders: Folders, write_set: WriteSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_set(tmp_path / "first", missing=("etcd",))
    second = write_set(tmp_path / "second", missing=("kwok",))
    monkeypatch.setenv("PATH", f"{first}:{second}")
    assert find_binaries(versions, folders) is None
    third = write_set(tmp_path / "third")
    monkeypatch.setenv("PATH", f"{first}:{second}:{third}:/bin")
    found = find_binaries(versions, folders)
    assert found is not None
    assert found.folder == third


def test_a_binary_that_does_not_run_has_no_version(tmp_path: Path, versions: VersionSet, write_set: WriteSet) -> None:
    folder = write_set(tmp_path / "bin")
    (folder / "etcd").write_text("#!/bin/sh\nexit 1\n")
    assert faults_of(folder, versions) == [f"etcd is of no version, not {versions.etcd}"]
