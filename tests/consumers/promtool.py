"""promtool's verdict about rule files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.consumers.prometheus_binaries import binary

Json = dict[str, Any]


def promtool(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run promtool, whatever its exit code."""
    return subprocess.run(
        [str(binary("promtool")), *arguments], input=stdin, capture_output=True, text=True, check=False
    )


def check_rules(path: Path) -> None:
    """Demand that promtool finds no fault with a rule file, duplicate rules included."""
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def expect_from_rules(folder: Path, rules: Path, tests: list[Json], evaluation: str = "1m") -> None:
    """Demand that rules come to what their tests expect.

    Args:
        folder: to write the test file to.
        tests: as in promtool's unit test format.
        evaluation: how often rules are evaluated.
    """
    path = folder / "tests.yaml"
    document = {"rule_files": [str(rules)], "evaluation_interval": evaluation, "tests": tests}
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    done = promtool("test", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
