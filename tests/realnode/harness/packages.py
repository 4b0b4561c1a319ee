"""Debian's packages: the programs of a node, installed where they are missing, and files for images."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine.progress import Progress

CNI_PLUGINS = Path("/usr/lib/cni")
_PACKAGE_OF = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "openssl": "openssl",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    str(CNI_PLUGINS / "bridge"): "containernetworking-plugins",
}
"""Program -> the package that brings it."""
_SYSTEM_FOLDERS = "/usr/sbin:/usr/bin:/sbin:/bin"
_OF_PYTHON = re.compile(r"(lib(?!perl)|python3|zlib1g)")


def require_programs(progress: Progress) -> None:
    """Install what a node needs and this machine lacks.

    Raises:
        GhostError: this is not root on Debian, or apt-get fails.
    """
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise GhostError("a real node needs root on Debian", "run these tests as root in a Debian container or machine")
    missing = {package for program, package in _PACKAGE_OF.items() if shutil.which(program, path=search_path()) is None}
    if missing:
        progress(f"installing {', '.join(sorted(missing))}")
        apt_get("update")
        apt_get("install", "--yes", "--no-install-recommends", *sorted(missing))


def search_path() -> str:
    """PATH with the folders of an administrator's programs, which a plain shell may lack."""
    return os.pathsep.join(filter(None, [os.environ.get("PATH"), _SYSTEM_FOLDERS]))


def python_packages() -> list[str]:
    """Debian's default Python and the libraries that it needs."""
    listed = _run(
        *("apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks"),
        *("--no-replaces", "--no-enhances", "python3"),
    )
    # The closure also has perl and dpkg, for maintainer scripts that nobody runs here.
    return sorted({line for line in listed.splitlines() if _OF_PYTHON.match(line)})


def download(names: list[str], folder: Path) -> list[Path]:
    """Fetch packages without installing them."""
    apt_get("download", *names, folder=folder)
    return sorted(folder.glob("*.deb"))


def apt_get(*arguments: str, folder: Path | None = None) -> None:
    """Run apt-get, asking nothing."""
    # As root: the user apt downloads as by default cannot write into our folder.
    _run("apt-get", "--quiet", "--option", "APT::Sandbox::User=root", *arguments, folder=folder)


def _run(*command: str, folder: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise GhostError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout
