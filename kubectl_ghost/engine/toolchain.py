"""The go command: is there one, and is it new enough for the modules that are to be built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path

from kubectl_ghost.domain.errors import GhostError

_GO_DIRECTIVE = re.compile(r"^go (\d+\.\d+(?:\.\d+)?)$", re.MULTILINE)


def go_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The user's environment (their module proxy, caches and toolchain choice), with what must not vary set."""
    return {
        **environment,
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        # A go.work of some folder above the cache would replace the pinned modules by the user's own.
        "GOWORK": "off",
        # The cache may lie in somebody's git checkout; what that is at is no version of Kubernetes.
        "GOFLAGS": "-mod=readonly -buildvcs=false",
    }


def required_go(modules: Iterable[Traversable]) -> str:
    """The newest Go that any of the module folders asks for in its go.mod."""
    directives = [_GO_DIRECTIVE.search((module / "go.mod").read_text(encoding="utf-8")) for module in modules]
    return max((match[1] for match in directives if match), key=_numbers)


def find_go(required: str, folder: Path) -> str:
    """The path of a go command that can build modules which ask for Go `required`.

    Args:
        required: a Go version, "1.26.0".
        folder: where to ask it from; go reads settings of the module around the folder it runs in.

    Raises:
        GhostError: if there is none, or it is too old and may not fetch a newer toolchain by itself.
    """
    hint = f"install Go {'.'.join(required.split('.')[:2])} or newer, or pass --bin-dir with a folder of binaries"
    path = shutil.which("go")
    if path is None:
        raise GhostError("cannot build the control plane: the go command is not on PATH", hint)
    # Asked as the toolchain that is installed: with auto, go would fetch another one just to answer.
    asked = subprocess.run(
        [path, "env", "GOVERSION"],
        cwd=folder,
        env={**go_environment(), "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    installed = asked.stdout.strip().removeprefix("go")
    if asked.returncode != 0 or not installed:
        raise GhostError(f"cannot build the control plane: {path} does not work: {asked.stderr.strip()}", hint)
    if _numbers(installed) < _numbers(required) and not _fetches_toolchains(path, folder):
        raise GhostError(
            f"cannot build the control plane: {path} is Go {installed}, the modules need Go {required}",
            f"{hint}, or set GOTOOLCHAIN=auto so that go fetches it",
        )
    return path


def _fetches_toolchains(path: str, folder: Path) -> bool:
    asked = subprocess.run(
        [path, "env", "GOTOOLCHAIN"], cwd=folder, env=go_environment(), capture_output=True, text=True, check=False
    )
    return asked.stdout.strip().endswith("auto")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
