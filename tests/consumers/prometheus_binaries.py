"""Prometheus and promtool for the consumers' tests: Debian's, unpacked into a folder of the user's cache.

`python -m tests.consumers.prometheus_binaries` fetches them; nothing is installed and no service is started. Where the
two are on PATH already, those are taken, so that other systems than Debian have a way, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kubectl_ghost.engine.folders import Folders

NAMES = ("prometheus", "promtool")
_HELP = (
    "The tests of consumers need Prometheus and promtool. On Debian and Ubuntu `make test-consumers` unpacks the "
    "distribution's package; elsewhere install Prometheus so that both are on PATH."
)


def folder() -> Path:
    """Where the binaries are unpacked to."""
    return Folders.of_user().cache / "consumers" / "prometheus"


def binary(name: str) -> Path:
    """The path of one of them.

    Raises:
        FileNotFoundError: saying how to get it.
    """
    installed = shutil.which(name)
    path = Path(installed) if installed else folder() / "usr" / "bin" / name
    if not path.is_file():
        raise FileNotFoundError(f"There is no {path}. {_HELP}")
    return path


def fetch() -> None:
    """Download and unpack the package, unless both binaries are there.

    Raises:
        SystemExit: if this is no Debian, or apt cannot get the package.
    """
    try:
        for name in NAMES:
            binary(name)
    except FileNotFoundError:
        _fetch()


def _fetch() -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        sys.exit(_HELP)
    parent = folder().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as scratch:
        package = _download(Path(scratch))
        unpacked = Path(scratch) / "unpacked"
        subprocess.run(["dpkg-deb", "-x", str(package), str(unpacked)], check=True)
        # Renamed at the end: a folder that is there is whole, whoever else fetches at the same time.
        shutil.rmtree(folder(), ignore_errors=True)
        unpacked.rename(folder())


def _download(scratch: Path) -> Path:
    said = ""
    # A fresh machine has no lists of packages yet, and old lists name packages that are gone.
    for refresh in (False, True):
        if refresh and os.geteuid() == 0:
            subprocess.run(["apt-get", "update", "-qq"], check=False)
        done = subprocess.run(
            ["apt-get", "download", "-qq", "prometheus"], cwd=scratch, capture_output=True, text=True, check=False
        )
        found = sorted(scratch.glob("prometheus_*.deb"))
        if done.returncode == 0 and found:
            return found[0]
        said = done.stderr.strip()
    sys.exit(f"apt-get download prometheus failed:\n{said}\n{_HELP}")


if __name__ == "__main__":
    fetch()
