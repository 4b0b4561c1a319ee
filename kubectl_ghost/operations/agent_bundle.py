"""The metrics agent as one file that a plain Python runs: its own code, what it uses, and the catalogues.

The bytes depend on nothing but the files that go in, so the same installation always makes the same ones.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.manifests.agent import BUNDLE, Bundle

LARGEST: Final = 900 * 1024
"""Bytes. The values of a ConfigMap are 1 MiB at most (k8s.io/kubernetes, MaxSecretSize), and there may be a second."""
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""A zip knows no earlier one."""
_START = b'import runpy\n\nrunpy.run_module("ghost_agent", run_name="__main__", alter_sys=True)\n'


def agent_bundle() -> Bundle:
    """The agent of this installation.

    Raises:
        GhostError: it is larger than a ConfigMap can hold.
    """
    packaged = files("kubectl_ghost.data").joinpath(BUNDLE)
    if packaged.is_file():
        # A frozen program has no source files to put together: it carries what was built with it.
        return _described(packaged.read_bytes())
    return _described(build())


def build() -> bytes:
    """Put the bundle together from the files of this installation."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted([("__main__.py", _START), *_contents()]):
            entry = zipfile.ZipInfo(name, _FIRST_DATE)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=9)
    return buffer.getvalue()


def _contents() -> Iterator[tuple[str, bytes]]:
    ghost = files("kubectl_ghost")
    yield "kubectl_ghost/__init__.py", ghost.joinpath("__init__.py").read_bytes()
    yield from _sources(ghost.joinpath("domain"), "kubectl_ghost/domain")
    for entry in ghost.joinpath("data").iterdir():
        if entry.name == "__init__.py" or entry.name.endswith(".json"):
            yield f"kubectl_ghost/data/{entry.name}", entry.read_bytes()
    for package in ("ghost_agent", "prometheus_client"):
        yield from _sources(files(package), package)


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry, f"{path}/{entry.name}")
        elif entry.name.endswith(".py"):
            yield f"{path}/{entry.name}", entry.read_bytes()


def _described(content: bytes) -> Bundle:
    if len(content) > LARGEST:
        raise GhostError(f"the agent is {len(content)} bytes, more than a ConfigMap can hold")
    digest = hashlib.sha256()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            for part in (name.encode(), archive.read(name)):
                digest.update(len(part).to_bytes(8, "big") + part)
    return Bundle(content, digest.hexdigest())
