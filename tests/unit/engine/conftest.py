"""Fixtures of the engine's unit tests: folders under a temporary root, programs that only say their version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.versions import VersionSet, version_set

WriteSet = Callable[..., Path]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders.of_user({"HOME": str(tmp_path / "home")})


@pytest.fixture
def versions() -> VersionSet:
    return version_set()


@pytest.fixture
def write_set(versions: VersionSet) -> WriteSet:
    """Writes a folder of shell scripts that print versions, some other than the right one, some not there at all."""

    def write(folder: Path, others: Mapping[str, str] | None = None, missing: tuple[str, ...] = ()) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for binary in versions.binaries:
            if binary.name in missing:
                continue
            version = (others or {}).get(binary.name, binary.version)
            path = folder / binary.name
            path.write_text(f"#!/bin/sh\necho asked >>{folder}/asked\necho '{binary.name} version v{version} go1'\n")
            path.chmod(0o755)
        return folder

    return write
