"""`kubectl ghost metrics backfill`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubectl_ghost.commands.metrics_options import series_options
from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.durations import DURATION

if TYPE_CHECKING:
    from ghost_agent.fleet import NodeRecord
    from ghost_agent.history import Period
    from ghost_agent.options import AgentOptions

_MOST_SAMPLES = 100_000
"""Of one series. CHOICE: a month, a sample every 30 s, fits; a node's past of so many takes 1.5 GB of memory."""
_EPILOG = """\b
Examples:
  # A day in which the pods of now have been running all the time, ready for Prometheus
  kubectl ghost metrics backfill --from 24h --age 24h -o history.om
  promtool tsdb create-blocks-from openmetrics history.om prometheus-data

\b
  # Utilisation alone, a sample a minute, a file for each node
  kubectl ghost metrics backfill --from 168h --step 1m --fields DCGM_FI_DEV_GPU_UTIL -o history/
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@click.option("--from", "ago", type=DURATION, default="24h", show_default=True, help="How long ago it begins")
@click.option("--step", type=DURATION, default="30s", show_default=True, help="How far apart samples are")
@click.option("--age", type=DURATION, help="Take every pod to be at least so old")
@click.option("--node", metavar="NAME", help="Of this node alone")
@click.option("-o", "--output", metavar="FILE|DIR/", help="Where to write it; a directory gets a file for each node")
@series_options
@click.pass_context
def command(
    context: click.Context,
    /,
    ago: float,
    step: float,
    age: float | None,
    node: str | None,
    output: str | None,
    **series: Any,
) -> int:
    """Write the history that the fleet would have had, in OpenMetrics text, so that rules over hours can be tested.

    The nodes of now have always been there; pods begin at their start time, faults at theirs, and phases go by in
    between. Pods that have ended by now are not in it. Nothing is written to the cluster.
    """
    from ghost_agent.history import Period, older, readable, youngest
    from kubectl_ghost.commands.metrics_options import agent_options
    from kubectl_ghost.conventions.messages import not_found

    _check(context, ago, step, output)
    options = agent_options(**series)
    records = _records(context, options)
    if node is not None and node not in records:
        click.echo(not_found("nodes", node), err=True)
        return 1
    now = time.time()
    chosen = {name: record for name, record in records.items() if name == node} or readable(records, _warn)
    if age is not None:
        chosen = {name: older(record, now, age) for name, record in chosen.items()}
    count, youngest_age = youngest(chosen, now)
    if count and youngest_age < ago and age is None:
        _warn(
            f"the youngest of {count} pods is {round(youngest_age)}s old: its GPUs are idle before; "
            "--age takes all pods to be at least so old"
        )
    _write(chosen, options, Period(now - ago, now, step), output)
    return 0


def _check(context: click.Context, ago: float, step: float, output: str | None) -> None:
    # Prometheus counts time in milliseconds.
    if not 0.001 <= step <= ago:
        raise click.UsageError("--step must be at least 1ms and no longer than --from", context)
    if ago / step > _MOST_SAMPLES:
        raise click.UsageError(
            f"{ago / step:.0f} samples of each series are more than {_MOST_SAMPLES}: take a longer --step", context
        )
    if output == "":
        raise click.UsageError("--output is empty: name a file or a directory", context)


def _warn(text: str) -> None:
    click.echo(f"Warning: {text}", err=True)


def _records(context: click.Context, options: AgentOptions) -> dict[str, NodeRecord]:
    from ghost_agent.fleet import Fleet
    from ghost_agent.watcher import Expired, Watcher
    from kubectl_ghost.commands.session import writer
    from kubectl_ghost.operations.agent_reader import AgentReader

    fleet = Fleet(pod_labels="pod-labels" in options.compatibility)
    Watcher(AgentReader(writer(context), Expired), fleet, problem=lambda _: None).list_once()
    return fleet.records()


def _write(records: dict[str, NodeRecord], options: AgentOptions, period: Period, output: str | None) -> None:
    from ghost_agent.history import write_history
    from kubectl_ghost.commands.whole_file import whole_file

    if output is None or output == "-":
        write_history(records, options, period, sys.stdout)
        return
    path = Path(output)
    if path.is_dir() or output.endswith(os.sep):
        targets = {path / f"{name}.om": {name: record} for name, record in records.items()}
    else:
        targets = {path: records}
    series = samples = 0
    for target, part in targets.items():
        with whole_file(target) as file:
            written = write_history(part, options, period, file)
        series, samples = series + written[0], samples + written[1]
    click.echo(f"{samples} samples of {series} series written to {output}", err=True)
