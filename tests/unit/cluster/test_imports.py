"""What a command pays for talking to a cluster at all."""

import subprocess
import sys

import pytest

HEAVY = (
    "kubernetes",
    "urllib3",
    "requests",
    "pydantic",
    "click",
    "rich",
    "logging",
    "concurrent",
    "tempfile",
    "encodings.idna",
)


@pytest.mark.parametrize("module", ["kubeconfig", "transport", "reads", "writes", "workers"])
def test_the_room_loads_nothing_heavy(module):
    program = f"import sys, kubectl_ghost.cluster.{module}; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
