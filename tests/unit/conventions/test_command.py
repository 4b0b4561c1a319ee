"""kubectl's spellings, and the tables that groups are built from."""

import pytest

from kubectl_ghost.conventions.command import normalised
from kubectl_ghost.conventions.messages import deleted, verbed
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.durations import parse_duration


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


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("2m", 120), ("1h30m", 5400), ("300ms", 0.3), ("0", 0), ("15", 15)]
)
def test_durations(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["100000000000h", "", "s", "5 m", "5d", "-1s", "1m-"])
def test_no_durations(text):
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)


def test_sentences():
    assert verbed("node", "a", "created") == "node/a created"
    assert verbed("node", "a", "created", DryRun.CLIENT) == "node/a created (dry run)"
    assert verbed("node", "a", "created", DryRun.SERVER) == "node/a created (server dry run)"
    assert deleted("node", "a", None) == 'node "a" deleted'
    assert deleted("pod", "a", "default") == 'pod "a" deleted from default namespace'
