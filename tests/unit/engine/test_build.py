"""Building, with a go command that only pretends."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.engine.build import build
from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.versions import VersionSet

FAKE_GO = """\
#!/bin/sh
if [ "$1" = env ]; then
  if [ "$2" = GOVERSION ]; then echo {version}; else echo {toolchain}; fi
  exit 0
fi
test -f go.mod && test -f go.sum || exit 9
echo "$@" >>{log}
echo "$CGO_ENABLED $GOFLAGS $GOWORK" >>{log}
for argument; do last=$argument; done
case $last in *{broken}) echo "cannot find module" >&2; exit 1;; esac
while [ "$1" != -o ]; do shift; done
echo binary >"$2"
"""


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = tmp_path / "go.log"
    log.touch()
    monkeypatch.setenv("PATH", f"{tmp_path / 'go'}:/usr/bin:/bin")

    def install(version: str = "go1.26.3", toolchain: str = "local", broken: str = "nothing") -> Path:
        path = tmp_path / "go" / "go"
        path.parent.mkdir(exist_ok=True)
        path.write_text(FAKE_GO.format(version=version, toolchain=toolchain, broken=broken, log=log))
        path.chmod(0o755)
        return log

    return install


def test_a_build_makes_the_whole_set_and_the_next_one_nothing(fake_go, versions: VersionSet, folders: Folders) -> None:
    log, told = fake_go(), []
    folder = build(versions, folders, told.append)
    assert {path.name for path in folder.iterdir()} == {binary.name for binary in versions.binaries}
    assert any(line.startswith("(4/8) building kube-apiserver, about 5 min") for line in told)
    assert "0 -mod=readonly -buildvcs=false off" in log.read_text()
    assert "-trimpath -ldflags -s -w -X" in log.read_text()
    before = log.read_text()
    assert build(versions, folders, told.append) == folder
    assert log.read_text() == before


def test_a_failure_shows_what_go_said_and_the_next_build_goes_on(
    fake_go, versions: VersionSet, folders: Folders
) -> None:
    fake_go(broken="/cmd/kube-apiserver")
    with pytest.raises(GhostError, match=r"building kube-apiserver failed, go said:\ncannot find module"):
        build(versions, folders, lambda line: None)
    folder = folders.binaries(versions.key)
    assert {path.name for path in folder.iterdir()} == {".build", "etcd", "etcdctl", "kubectl"}
    log = fake_go()
    log.write_text("")
    told: list[str] = []
    build(versions, folders, told.append)
    assert "go.etcd.io" not in log.read_text()
    assert told[0].startswith("building 5 of 8 binaries")


def test_without_go_there_is_a_hint(
    tmp_path: Path, versions: VersionSet, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GhostError, match="go command is not on PATH") as refusal:
        build(versions, folders, lambda line: None)
    assert "--bin-dir" in str(refusal.value.hint)


def test_an_old_go_is_refused_unless_it_fetches_toolchains(fake_go, versions: VersionSet, folders: Folders) -> None:
    fake_go(version="go1.22.1")
    with pytest.raises(GhostError, match=r"is Go 1\.22\.1, the modules need Go 1\.26"):
        build(versions, folders, lambda line: None)
    fake_go(version="go1.22.1", toolchain="auto")
    build(versions, folders, lambda line: None)
