"""The version table and the module files beside it."""

from __future__ import annotations

import pytest

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.engine.toolchain import required_go
from kubectl_ghost.engine.versions import controlplane_data, known_minors, version_set


@pytest.mark.parametrize("minor", known_minors())
def test_every_set_has_its_module_files_and_they_pin_its_versions(minor: str) -> None:
    versions = version_set(minor)
    modules = {"etcd": "go.etcd.io/etcd/server/v3", "kubectl": "k8s.io/kubernetes", "kwok": "sigs.k8s.io/kwok"}
    for binary in versions.binaries:
        module = controlplane_data() / binary.folder
        assert (module / "go.sum").is_file()
        if binary.name in modules:
            assert f"{modules[binary.name]} v{binary.version}" in (module / "go.mod").read_text(encoding="utf-8")


def test_the_linker_is_told_the_version() -> None:
    flags = {binary.name: binary.link_flags for binary in version_set("1.36").binaries}
    stamp = "k8s.io/component-base/version"
    assert flags["kubectl"] == f"-s -w -X {stamp}.gitVersion=v1.36.1 -X {stamp}.gitMajor=1 -X {stamp}.gitMinor=36"
    assert flags["etcd"] == "-s -w"


@pytest.mark.parametrize("spelling", ["1.36", "v1.36", "1.36.1", "v1.36.1"])
def test_a_version_is_found_by_any_spelling(spelling: str) -> None:
    assert version_set(spelling).kubernetes == "1.36.1"


@pytest.mark.parametrize("spelling", ["1.99", "1.36.99", "latest", ""])
def test_an_unknown_version_is_refused_and_the_known_ones_named(spelling: str) -> None:
    if not spelling:
        assert version_set(spelling) == version_set()
        return
    with pytest.raises(InputError) as refusal:
        version_set(spelling)
    assert "1.36" in str(refusal.value.hint)


def test_the_key_tells_sets_apart() -> None:
    versions = version_set()
    assert all(version in versions.key for version in (versions.kubernetes, versions.etcd, versions.kwok))


def test_the_required_go_is_read_from_the_modules() -> None:
    assert required_go([controlplane_data() / "1.36.1"]) == "1.26.0"
