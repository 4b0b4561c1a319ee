"""The agent as one file: small, the same each time, and all that a plain Python needs."""

import io
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.operations import agent_bundle
from kubectl_ghost.operations.agent_bundle import build


def names(content):
    return zipfile.ZipFile(io.BytesIO(content)).namelist()


def test_it_is_the_same_bytes_each_time_and_fits_well_into_a_config_map():
    made = build()
    assert made == build()
    assert len(made) < 400 * 1024


def test_only_what_the_agent_uses_is_in_it():
    found = names(build())
    assert found == sorted(found)
    assert {name.split("/")[0] for name in found} == {
        "__main__.py",
        "ghost_agent",
        "kubectl_ghost",
        "prometheus_client",
    }
    assert {name.split("/")[1] for name in found if name.startswith("kubectl_ghost/")} == {
        "__init__.py",
        "data",
        "domain",
    }
    assert {name.rpartition(".")[2] for name in found} == {"py", "json"}


@pytest.mark.parametrize("code", ["import ghost_agent.agent", "from ghost_agent.__main__ import main"])
def test_it_imports_nothing_from_elsewhere(code, tmp_path):
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(build())
    script = (
        f"import sys; sys.path.insert(0, {str(archive)!r})\n{code}\n"
        "ours = ('ghost_agent', 'kubectl_ghost', 'prometheus_client')\n"
        "print(*{module.__file__ for name, module in sys.modules.items() if name.split('.')[0] in ours}, sep='\\n')"
    )
    # -S: without site-packages, as on a stock image.
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert all(line.startswith(str(archive)) for line in done.stdout.splitlines())


def test_python_runs_it(tmp_path):
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(build())
    command = [sys.executable, "-I", "-S", str(archive), "--fields", "nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "nonsense" in done.stderr


def packaged(monkeypatch, content):
    entry = SimpleNamespace(is_file=lambda: True, read_bytes=lambda: content)
    monkeypatch.setattr(agent_bundle, "files", lambda package: SimpleNamespace(joinpath=lambda name: entry))


def test_a_frozen_program_carries_it_and_the_digest_is_that_of_the_files(monkeypatch):
    made = agent_bundle.agent_bundle()
    stored = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(made.content)) as before, zipfile.ZipFile(stored, "w") as after:
        for name in before.namelist():
            after.writestr(name, before.read(name))
    packaged(monkeypatch, stored.getvalue())
    carried = agent_bundle.agent_bundle()
    assert (carried.content, carried.digest) == (stored.getvalue(), made.digest)
    assert len(carried.content) > len(made.content)


def test_other_code_has_another_digest(monkeypatch):
    before = agent_bundle.agent_bundle()
    monkeypatch.setattr(agent_bundle, "_START", b"pass")
    assert agent_bundle.agent_bundle().digest != before.digest


def test_what_does_not_fit_into_a_config_map_is_refused(monkeypatch):
    packaged(monkeypatch, b"x" * (900 * 1024 + 1))
    with pytest.raises(GhostError, match="921601 bytes, more than a ConfigMap can hold"):
        agent_bundle.agent_bundle()
