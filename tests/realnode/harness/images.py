"""Two container images made on the spot, without a registry: a stock Python, and the one that holds a pod's network.

Their files come from Debian's packages. The Python one bears the reference of the image that the product asks for.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.progress import Progress
from tests.realnode.harness import packages
from tests.realnode.harness.places import PAUSE_IMAGE

_MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders that are links into /usr on Debian, whatever a package says."""
_APPLETS = ("sh", "ls", "cat", "env", "id", "tar")
"""What `kubectl exec` and `kubectl cp` want."""
_UNUSED = ("usr/share/doc", "usr/share/man", "usr/share/locale")
_OFFICIAL_PATH = "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


def require_images(python_reference: str, folders: Folders, progress: Progress) -> list[Path]:
    """The archives of both images, made once into the user's cache."""
    # Made anew when this recipe changes.
    recipe = hashlib.sha256(Path(__file__).read_bytes() + python_reference.encode()).hexdigest()[:12]
    folder = folders.cache / "realnode" / f"images-{recipe}"
    archives = [folder / "pause.tar", folder / "python.tar"]
    if not all(archive.exists() for archive in archives):
        progress("making the images of the node from Debian's packages")
        folder.mkdir(parents=True, exist_ok=True)
        packages.apt_get("update")
        with tempfile.TemporaryDirectory() as downloads:
            debs = packages.download([*packages.python_packages(), "busybox-static"], Path(downloads))
            busybox = [deb for deb in debs if deb.name.startswith("busybox-static_")]
            # As a pod's first process sleep ignores SIGTERM; containerd ends this container by SIGKILL anyway.
            forever = ["/bin/busybox", "sleep", "2147483647"]
            _write(archives[0], PAUSE_IMAGE, _layer(busybox), {"Entrypoint": forever})
            _write(archives[1], python_reference, _layer(debs), {"Env": [_OFFICIAL_PATH], "Cmd": ["python3"]})
    return archives


def _layer(debs: Iterable[Path]) -> bytes:
    """One tar of all that the packages hold."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder in _MERGED:
            _add_link(layer, folder, f"usr/{folder}")
        for applet in _APPLETS:
            _add_link(layer, f"usr/bin/{applet}", "busybox")
        seen: set[str] = set()
        for deb in debs:
            for member, content in _files(deb):
                if member.name not in seen:
                    seen.add(member.name)
                    layer.addfile(member, content)
        _add_folder(layer, "tmp", 0o1777)
    return buffer.getvalue()


def _files(deb: Path) -> Iterator[tuple[tarfile.TarInfo, Any]]:
    unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(deb)], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
        for member in archive:
            name = _merged(member.name)
            if name in ("", "usr/bin/sh") or name in _MERGED or name.startswith(_UNUSED):
                continue
            content = archive.extractfile(member) if member.isreg() else None
            member.name = name
            if member.islnk():
                member.linkname = _merged(member.linkname)
            yield member, content


def _merged(name: str) -> str:
    """A path below the root, in /usr where Debian merges it there."""
    name = name.removeprefix("./").strip("/").removeprefix(".")
    return f"usr/{name}" if name.split("/")[0] in _MERGED and "/" in name else name


def _add_link(archive: tarfile.TarFile, name: str, target: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    archive.addfile(member)


def _add_folder(archive: tarfile.TarFile, name: str, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.mode = tarfile.DIRTYPE, mode
    archive.addfile(member)


def _write(path: Path, reference: str, layer: bytes, settings: dict[str, Any]) -> None:
    """An OCI image layout (image-spec 1.0) of one layer as one tar, under its name only when it is whole."""
    platform = {"architecture": _architecture(), "os": "linux"}
    config = _json(
        {**platform, "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]}, "config": {**settings, "User": ""}}
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
        }
    )
    described = _descriptor("application/vnd.oci.image.manifest.v1+json", manifest)
    named = {"annotations": {"io.containerd.image.name": reference}, "platform": platform}
    index = _json({"schemaVersion": 2, "manifests": [described | named]})
    unfinished = path.with_suffix(".new")
    with tarfile.open(unfinished, "w") as archive:
        _add_file(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add_file(archive, "index.json", index)
        for blob in (layer, config, manifest):
            _add_file(archive, f"blobs/{_digest(blob).replace(':', '/')}", blob)
    unfinished.rename(path)


def _add_file(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _architecture() -> str:
    """Debian's name of it, which for common machines is also Go's and OCI's."""
    asked = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
