"""Running commands and timing them from outside, pair by pair, so that a drifting machine drifts for both."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sample:
    """One run: wall seconds, CPU seconds of the process, and its largest resident set in MB."""

    wall: float
    cpu: float
    memory: float


@dataclass
class Row:
    """One line of the table: what was measured, its peer, and the goal that design and README promise."""

    what: str
    peer_name: str
    goal: str
    ours: list[Sample] = field(default_factory=list)
    peer: list[Sample] = field(default_factory=list)

    def summary(self) -> dict[str, object]:
        """Medians, and the median of the ratios taken pair by pair."""
        result: dict[str, object] = {
            "what": self.what,
            "goal": self.goal,
            "seconds": round(statistics.median(sample.wall for sample in self.ours), 3),
            "cpuSeconds": round(statistics.median(sample.cpu for sample in self.ours), 3),
            "peakMB": round(max(sample.memory for sample in self.ours), 1),
            "runs": [round(sample.wall, 3) for sample in self.ours],
        }
        if self.peer:
            ratios = [ours.wall / peer.wall for ours, peer in zip(self.ours, self.peer, strict=True)]
            result |= {
                "peer": self.peer_name,
                "peerSeconds": round(statistics.median(sample.wall for sample in self.peer), 3),
                "peerRuns": [round(sample.wall, 3) for sample in self.peer],
                "ratio": round(statistics.median(ratios), 2),
            }
        return result


@dataclass
class Figure:
    """A line of the table that is not a time: what was measured and in what, the goal, and what a peer is said to need.

    `quoted` is not measured here: the peer is not part of this project.
    """

    what: str
    goal: str
    quoted: str = ""
    ours: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, object]:
        """The median and all runs."""
        result: dict[str, object] = {
            "what": self.what,
            "goal": self.goal,
            "value": round(statistics.median(self.ours), 4),
            "runs": [round(value, 4) for value in self.ours],
        }
        return result | ({"peerQuoted": self.quoted} if self.quoted else {})


def run(command: Sequence[str], environment: Mapping[str, str]) -> Sample:
    """Run a command to its end, its output thrown away.

    Raises:
        RuntimeError: if it fails, with what it said.
    """
    started = time.perf_counter()
    process = subprocess.Popen(command, env=dict(environment), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} exited {process.returncode}: {errors.decode()[-500:]}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def timed(action: Callable[[], None]) -> Sample:
    """Time an action of several steps; CPU and memory are not its own, so they are 0."""
    started = time.perf_counter()
    action()
    return Sample(time.perf_counter() - started, 0.0, 0.0)


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """The summaries as text."""
    lines = [f"{'what':66} {'ours':>9} {'peer':>9} {'ratio':>6}  goal"]
    for row in rows:
        peer = f"{row['peerSeconds']:.2f} s" if "peer" in row else ""
        ratio = f"{row['ratio']:.2f}" if "peer" in row else ""
        ours = f"{row['seconds']:7.2f} s" if "seconds" in row else _number(row["value"])
        quoted = f"(peer, quoted: {row['peerQuoted']})" if "peerQuoted" in row else ""
        goal = f"{row['goal']} {quoted}".strip()
        lines.append(f"{row['what']:66} {ours:>9} {peer:>9} {ratio:>6}  {goal}")
    return "\n".join(lines)


def _number(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, float) and value >= 100 else f"{value:.3g}"
