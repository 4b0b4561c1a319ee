"""kubectl's spellings, and the tables that groups are built from."""

import pytest

from kubectl_ghost.conventions.command import normalised
from kubectl_ghost.conventions.messages import deleted, verbed
from kubectl_ghost.domain.dry_run import DryRun


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["-o=json"], ["-o", "json"]),
        (["-l=a=b"], ["-l", "a=b"]),
        (["-v=6"], ["-v", "6"]),
        (["--dry-run", "x"], ["--dry-run=unspecified", "x"]),
        (["--dry-run=server"], ["--dry-run=server"]),
        (["--wait", "x"], ["--wait=true", "x"]),
        (["--", "-o=json"], ["--", "-o=json"]),
        (["--count=3"], ["--count=3"]),
        (["--force=true", "--all=false"], ["--force"]),
        (["--force=maybe"], ["--force=maybe"]),
    ],
)
def test_spellings(given, meant):
    assert normalised(given, {"--force", "--all"}) == meant


def test_sentences():
    assert verbed("node", "a", "created") == "node/a created"
    assert verbed("node", "a", "created", DryRun.CLIENT) == "node/a created (dry run)"
    assert verbed("node", "a", "created", DryRun.SERVER) == "node/a created (server dry run)"
    assert deleted("node", "a", None) == 'node "a" deleted'
    assert deleted("pod", "a", "default") == 'pod "a" deleted from default namespace'
