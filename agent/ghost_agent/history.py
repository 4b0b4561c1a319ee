"""The past that a fleet would have had, in OpenMetrics text with timestamps: what promtool makes blocks of.

A node's past is its present without the pods that had not begun and the faults that had not come. Between two such
moments nothing about it changes but what phases do, so it is derived once for each. What is gone by now (pods that have
ended, layouts that were others) is not known, and not in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from tempfile import TemporaryFile, gettempdir
from typing import IO, Protocol

from ghost_agent.devices import listed_node
from ghost_agent.exposition import series_of
from ghost_agent.fleet import NodeRecord
from ghost_agent.labels import spelling
from ghost_agent.listed import ListedNode
from ghost_agent.options import AgentOptions
from ghost_agent.sampling import Sampler
from kubectl_ghost.domain.dcgm_fields import Field
from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.declaration_reading import decode
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import GpuState, LastXid, NodeHardware
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION, Json

EOF = "# EOF\n"


class TextSink(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object:
        """Take a piece of it."""
        ...


@dataclass(frozen=True, slots=True)
class Period:
    """From when to when, in seconds since 1970, and how far apart samples are."""

    start: float
    end: float
    step: float

    def moments(self) -> Iterator[float]:
        """The moments of the samples: whole multiples of the step, as a scrape at fixed times has."""
        first = math.ceil(self.start / self.step)
        last = math.floor(self.end / self.step)
        return (number * self.step for number in range(first, last + 1))


def older(record: NodeRecord, now: float, age: float) -> NodeRecord:
    """The same node with all its pods at least so old."""
    begun = datetime.fromtimestamp(now - age, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def aged(pod: Json) -> Json:
        start = pod["status"].get("startTime")
        return pod if not start else {**pod, "status": {**pod["status"], "startTime": min(start, begun)}}

    return NodeRecord(record.node, {key: aged(pod) for key, pod in record.pods.items()}, record.claims)


def youngest(records: Mapping[str, NodeRecord], now: float) -> tuple[int, float]:
    """How many pods run on these nodes, and the age in seconds of the youngest of them; infinite if there is none."""
    begun = [
        _seconds(pod["status"]["startTime"])
        for record in records.values()
        for pod in record.pods.values()
        if pod["status"].get("phase") == "Running" and pod["status"].get("startTime")
    ]
    return len(begun), now - max(begun) if begun else math.inf


def readable(records: Mapping[str, NodeRecord], problem: Callable[[str], None]) -> dict[str, NodeRecord]:
    """The nodes whose declarations can be read.

    Args:
        problem: told of each of the others.
    """
    found = {}
    for name, record in records.items():
        try:
            _declared(name, record)
        except GhostError as error:
            problem(error.message)
        else:
            found[name] = record
    return found


def _declared(name: str, record: NodeRecord) -> NodeHardware:
    return decode((record.node or {})["metadata"]["annotations"].get(HARDWARE_ANNOTATION, ""), name)


def write_history(
    records: Mapping[str, NodeRecord], options: AgentOptions, period: Period, sink: TextSink
) -> tuple[int, int]:
    """Write the past of these nodes, metric by metric as OpenMetrics wants it.

    Each GPU's lines go to a file a metric first, so that no more than the past of one GPU is ever in memory.

    Returns:
        How many series and samples that were.

    Raises:
        GhostError: if a node's declaration cannot be read, or there is no room for the files in between.
    """
    sampler = Sampler(options)
    series = samples = 0
    with ExitStack() as stack:
        spools = [_spool(stack) for _ in sampler.fields]
        for name, record in records.items():
            for lines_by_field in _lines_by_gpu(name, record, options, period, sampler):
                for spool, lines in zip(spools, lines_by_field, strict=True):
                    _keep(spool, lines)
                    series += len(lines)
                    samples += sum(map(len, lines.values()))
        for field, spool in zip(sampler.fields, spools, strict=True):
            if spool.tell():
                sink.write(_header(field))
                spool.seek(0)
                while piece := spool.read(1 << 20):
                    sink.write(piece)
    sink.write(EOF)
    return series, samples


def _spool(stack: ExitStack) -> IO[str]:
    spool: IO[str] = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - the stack closes it
    stack.callback(_drop, spool)
    return spool


def _drop(spool: IO[str]) -> None:
    # What cannot be written cannot be at the end either, and has been told.
    with suppress(OSError):
        spool.close()


def _keep(spool: IO[str], lines: _Lines) -> None:
    try:
        for label, found in lines.items():
            spool.write("".join([f"{label} {value} {moment}\n" for moment, value in found]))
        spool.flush()
    except OSError as error:
        raise GhostError(
            f"cannot write temporary files to {gettempdir()}: {error.strerror or error}",
            "Name a folder with more room in TMPDIR.",
        ) from error


def _header(field: Field) -> str:
    # OpenMetrics has no counter without _total, and the exporter's have none.
    kind = "gauge" if field.prom_type == "gauge" else "unknown"
    help_text = field.help.replace("\\", r"\\").replace('"', r"\"")
    return f"# HELP {field.name} {help_text}\n# TYPE {field.name} {kind}\n"


_Lines = dict[str, list[tuple[str, str]]]
"""A series' name and labels -> moment and value of each sample."""


def _lines_by_gpu(
    name: str, record: NodeRecord, options: AgentOptions, period: Period, sampler: Sampler
) -> Iterator[list[_Lines]]:
    """The samples of each GPU of a node, by field."""
    spans = list(_spans(name, record, options, period))
    for uuid in dict.fromkeys(gpu.uuid for node, _ in spans for gpu in node.gpus):
        alone = [
            (replace(node, gpus=tuple(gpu for gpu in node.gpus if gpu.uuid == uuid)), until) for node, until in spans
        ]
        yield _lines(alone, period, sampler)
        sampler.forget(name)


def _lines(spans: Sequence[tuple[ListedNode, float]], period: Period, sampler: Sampler) -> list[_Lines]:
    found: list[_Lines] = [{} for _ in sampler.fields]
    following = iter(spans)
    node, until = next(following)
    for moment in period.moments():
        while moment >= until:
            node, until = next(following)
        text = f"{moment:.3f}".rstrip("0").rstrip(".")
        taken = list(sampler.sample(node, moment)) if node.answers else []
        for lines, series in zip(found, series_of(sampler.fields, taken, moment), strict=True):
            for label, value in series:
                lines.setdefault(label, []).append((text, value))
    return found


def _spans(name: str, record: NodeRecord, options: AgentOptions, period: Period) -> Iterator[tuple[ListedNode, float]]:
    """The node as it was, each with the moment until which it was so."""
    words, parents = spelling(options.compatibility), "mig-parent" in options.compatibility
    hardware = _declared(name, record)
    changes = sorted({*_beginnings(record, hardware), math.inf})
    begin = -math.inf
    for change in changes:
        if change > period.start:
            yield listed_node(name, _as_of(record, hardware, begin), options.fields, words, parents), change
        begin = change


def _beginnings(record: NodeRecord, hardware: NodeHardware) -> Iterator[float]:
    for pod in record.pods.values():
        if pod["status"].get("startTime"):
            yield _seconds(pod["status"]["startTime"])
    for _, fault in hardware.all_faults():
        yield _seconds(fault.since)
    for _, state in hardware.gpus:
        if state.last_xid is not None:
            yield _seconds(state.last_xid.since)
    if hardware.reboot is not None:
        yield _seconds(hardware.reboot.since)


def _as_of(record: NodeRecord, hardware: NodeHardware, moment: float) -> NodeRecord:
    """A node without what had not begun by then."""
    pods = {key: pod for key, pod in record.pods.items() if _seconds(pod["status"].get("startTime", "")) <= moment}
    before = replace(
        hardware,
        faults=tuple(fault for fault in hardware.faults if _seconds(fault.since) <= moment),
        gpus=tuple((index, _state_as_of(state, moment)) for index, state in hardware.gpus),
        reboot=hardware.reboot if hardware.reboot and _seconds(hardware.reboot.since) <= moment else None,
    )
    metadata = (record.node or {})["metadata"]
    annotations = {**metadata["annotations"], HARDWARE_ANNOTATION: encode(before)}
    return NodeRecord({"metadata": {**metadata, "annotations": annotations}}, pods, record.claims)


def _state_as_of(state: GpuState, moment: float) -> GpuState:
    known: LastXid | None = state.last_xid
    return replace(
        state,
        faults=tuple(fault for fault in state.faults if _seconds(fault.since) <= moment),
        last_xid=known if known and _seconds(known.since) <= moment else None,
    )


def _seconds(text: str) -> float:
    """Seconds since 1970; what has no time has always been."""
    return datetime.fromisoformat(text).timestamp() if text else -math.inf
