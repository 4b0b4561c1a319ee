"""What a test reads in a scrape, without any of the agent's own code."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"

Holding = tuple[str, int, str]
"""Node, index of the GPU, and namespace/name of the pod that has it; the last is empty for a free GPU."""


def holdings(text: str) -> Iterator[tuple[Holding, float]]:
    """Who has which GPU by its utilisation series, with the utilisation."""
    for line in block(text, _UTILIZATION):
        labels, value = _series(line)
        pod = f"{labels['namespace']}/{labels['pod']}" if "pod" in labels else ""
        yield (labels["Hostname"], int(labels["gpu"]), pod), value


def counters(text: str) -> Iterator[tuple[str, float]]:
    """Every counter of every GPU, whoever holds it: (metric and UUID, value)."""
    for name in re.findall(r"^# TYPE (\w+) counter$", text, re.MULTILINE):
        for line in block(text, name):
            labels, value = _series(line)
            yield f"{name} {labels['UUID']}", value


def block(text: str, name: str) -> list[str]:
    """The series of one metric: they follow its TYPE line up to the next metric's HELP."""
    begin = text.find(f"# TYPE {name} ")
    if begin < 0:
        return []
    begin = text.index("\n", begin) + 1
    end = text.find("\n# HELP ", begin)
    return text[begin : None if end < 0 else end].splitlines()


def _series(line: str) -> tuple[dict[str, str], float]:
    series, _, value = line.rpartition(" ")
    return dict(_LABEL.findall(series)), float(value)
