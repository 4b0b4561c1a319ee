"""Finds a whole set of binaries in one place: a given folder, our cache, PATH; else has it built.

A set is never mixed from several places: an etcd of one version beside an API server of another is a fault that shows
days later. What a place offers is checked by asking each binary for its version.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine.build import build
from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.progress import Progress
from kubectl_ghost.engine.versions import Binary, VersionSet

BIN_DIR_VARIABLE = "KUBECTL_GHOST_BIN_DIR"
_VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+[-+.\w]*)")
_STAMP = ".verified.json"


@dataclass(frozen=True, slots=True)
class BinarySet:
    """A folder that holds every binary of a set, each of the right version."""

    folder: Path
    versions: VersionSet

    def __getitem__(self, name: str) -> str:
        """The path of one binary."""
        return str(self.folder / name)


def require_binaries(
    versions: VersionSet, folders: Folders, progress: Progress, bin_dir: Path | None = None
) -> BinarySet:
    """A whole set, found or built.

    Args:
        versions: what is wanted.
        folders: where our cache lies.
        progress: told about a build.
        bin_dir: a folder that is to be used and no other.

    Raises:
        GhostError: if `bin_dir` lacks a binary or holds one of another version, or a build fails.
    """
    found = find_binaries(versions, folders, bin_dir)
    if found is None:
        found = BinarySet(build(versions, folders, progress), versions)
        faults = _faults_of_cache(found)
        if faults:
            raise GhostError(f"{found.folder}: {'; '.join(faults)}", "delete that folder and run the command again")
    return found


def find_binaries(versions: VersionSet, folders: Folders, bin_dir: Path | None = None) -> BinarySet | None:
    """A whole set that exists already, without building anything."""
    if bin_dir is not None:
        faults = faults_of(bin_dir, versions)
        if faults:
            raise GhostError(f"{bin_dir}: {'; '.join(faults)}", f"Kubernetes {versions.kubernetes} was asked for")
        return BinarySet(bin_dir, versions)
    cached = BinarySet(folders.binaries(versions.key), versions)
    if not _faults_of_cache(cached):
        return cached
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        if entry and not _missing(Path(entry), versions) and not faults_of(Path(entry), versions):
            return BinarySet(Path(entry), versions)
    return None


def chosen_bin_dir(flag: str | None) -> Path | None:
    """The folder that the flag or, without it, the environment names."""
    given = flag or os.environ.get(BIN_DIR_VARIABLE)
    return Path(given).expanduser().absolute() if given else None


def faults_of(folder: Path, versions: VersionSet) -> list[str]:
    """What keeps a folder from being a whole set: one phrase a binary, none if it is one."""
    missing = _missing(folder, versions)
    if missing:
        return [f"{name} is missing" for name in missing]
    # In parallel: starting a binary of 100 MB takes about 100 ms, and there are eight.
    with ThreadPoolExecutor(max_workers=len(versions.binaries)) as pool:
        printed = pool.map(lambda binary: printed_version(folder / binary.name, binary), versions.binaries)
        return [
            f"{binary.name} is {version or 'of no version'}, not {binary.version}"
            for binary, version in zip(versions.binaries, printed, strict=True)
            if version != binary.version
        ]


def printed_version(path: Path, binary: Binary) -> str | None:
    """The version that a binary prints, or nothing if it does not run or prints none."""
    try:
        asked = subprocess.run(
            [str(path), *binary.version_arguments], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(asked.stdout)
    return match[1] if match and asked.returncode == 0 else None


def _missing(folder: Path, versions: VersionSet) -> list[str]:
    return [binary.name for binary in versions.binaries if not os.access(folder / binary.name, os.X_OK)]


def _faults_of_cache(cached: BinarySet) -> list[str]:
    """As `faults_of`, but a set of our own that has not changed since it was checked is not asked again."""
    missing = _missing(cached.folder, cached.versions)
    if missing:
        return [f"{name} is missing" for name in missing]
    stamp = cached.folder / _STAMP
    identity = {
        binary.name: [status.st_size, status.st_mtime_ns]
        for binary in cached.versions.binaries
        if (status := (cached.folder / binary.name).stat())
    }
    if stamp.exists() and stamp.read_text(encoding="utf-8") == json.dumps(identity):
        return []
    faults = faults_of(cached.folder, cached.versions)
    if not faults:
        stamp.write_text(json.dumps(identity), encoding="utf-8")
    return faults
