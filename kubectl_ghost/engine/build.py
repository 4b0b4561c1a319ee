"""Builds a control plane's binaries from pinned Go modules into the user's cache, one at a time.

A binary appears under its name only when it is whole, so a build may be interrupted at any moment, by kill -9 too, and
the next one goes on with what is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.lock import exclusive
from kubectl_ghost.engine.progress import Progress, spoken
from kubectl_ghost.engine.toolchain import find_go, go_environment, required_go
from kubectl_ghost.engine.versions import Binary, VersionSet, controlplane_data

_SIGN_OF_LIFE_SECONDS = 60
_LINES_OF_AN_ERROR = 20


def build(versions: VersionSet, folders: Folders, progress: Progress) -> Path:
    """Build what is missing of a set and return its folder.

    Raises:
        GhostError: if there is no usable go command or a build fails; binaries built so far are kept.
    """
    folder = folders.binaries(versions.key)
    with exclusive(folders.lock(versions.key), progress, f"another build of Kubernetes {versions.kubernetes}"):
        missing = [binary for binary in versions.binaries if not (folder / binary.name).exists()]
        if missing:
            _announce(versions, missing, progress)
            _build_all(versions, missing, folder, progress)
    return folder


def _announce(versions: VersionSet, missing: list[Binary], progress: Progress) -> None:
    minutes = -(-sum(binary.seconds for binary in missing) // 60)
    progress(
        f"building {len(missing)} of {len(versions.binaries)} binaries of Kubernetes {versions.kubernetes}, "
        f"etcd {versions.etcd} and kwok {versions.kwok}: about {minutes} min on 2 cores, once"
    )


def _build_all(versions: VersionSet, missing: list[Binary], folder: Path, progress: Progress) -> None:
    workshop = folder / ".build"
    # What an earlier build left when it was killed.
    shutil.rmtree(workshop, ignore_errors=True)
    workshop.mkdir(parents=True)
    go = find_go(required_go(controlplane_data() / binary.folder for binary in missing), workshop)
    for position, binary in enumerate(versions.binaries, start=1):
        if binary in missing:
            _build_one(go, binary, folder, f"({position}/{len(versions.binaries)})", progress)
    shutil.rmtree(workshop, ignore_errors=True)


def _build_one(go: str, binary: Binary, folder: Path, step: str, progress: Progress) -> None:
    module = _module_copy(binary, folder / ".build")
    # The process number: a go command orphaned by kill -9 may still be writing the file of the build before.
    unfinished = folder / ".build" / f"{binary.name}.{os.getpid()}"
    progress(f"{step} building {binary.name}, {_expectation(binary.seconds)}")
    begun = time.monotonic()
    _run_go(
        [go, "build", "-trimpath", "-ldflags", binary.link_flags, "-o", str(unfinished), binary.package],
        module,
        binary.name,
        lambda: progress(f"{step} building {binary.name}: {spoken(time.monotonic() - begun)} so far"),
    )
    unfinished.rename(folder / binary.name)
    progress(f"{step} built {binary.name} in {spoken(time.monotonic() - begun)}")


def _module_copy(binary: Binary, workshop: Path) -> Path:
    """go wants to write beside a go.mod, and the package's own folder may be read-only or an archive."""
    module = workshop / "modules" / binary.folder
    module.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum"):
        (module / name).write_bytes((controlplane_data() / binary.folder / name).read_bytes())
    return module


def _run_go(command: list[str], module: Path, name: str, still_running: Callable[[], None]) -> None:
    log = module.parent / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=module, env=go_environment(), stdout=output, stderr=output)
        try:
            while _runs(process):
                still_running()
        finally:
            # Ctrl-C reaches go as well; a SystemExit does not.
            process.kill()
            process.wait()
    if process.returncode != 0:
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES_OF_AN_ERROR:]
        raise GhostError(
            "\n".join([f"building {name} failed, go said:", *last]),
            "run the same command again to go on: what is built is kept",
        )


def _runs(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=_SIGN_OF_LIFE_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _expectation(seconds: int) -> str:
    if seconds < 60:
        return "less than a minute on 2 cores"
    return f"about {round(seconds / 60)} min on 2 cores"
