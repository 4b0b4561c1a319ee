"""`make bench`: a table for people, JSON for comparing runs."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import tempfile
from pathlib import Path

from tests.bench.measure import table
from tests.bench.rows import PARTS, Bench
from tests.e2e.support import Ghost, running_cluster


def main() -> None:
    """Measure everything once and print it."""
    arguments = argparse.ArgumentParser(prog="make bench", description=__doc__)
    arguments.add_argument("--json", type=Path, help="file to write the figures to")
    arguments.add_argument("--runs", type=int, default=3, help="runs of each pair (default 3)")
    arguments.add_argument("--only", choices=PARTS, action="append", help="measure this part alone")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        user = Ghost(Path(folder))
        user.home.mkdir()
        # Compiled modules are what an installed tool has; some environments switch them off.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        with contextlib.contextmanager(running_cluster)(user) as cluster:
            rows, bench = [], Bench(cluster, given.runs)
            for part in given.only or PARTS:
                for row in PARTS[part](bench):
                    rows.append(row.summary())
                    print(table([rows[-1]]).splitlines()[1], flush=True)
    print(f"\n{os.cpu_count()} cores, Python {platform.python_version()}; medians of {given.runs} runs")
    print(table(rows))
    if given.json:
        given.json.write_text(json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
