"""`kubectl ghost metrics`: the group; the module behind a subcommand is loaded when it is called."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import CommandTable, GhostGroup

_COMMANDS = "kubectl_ghost.commands"
_SERVE, _ONCE, _USE = "Serve", "Print", "Use"
SUBCOMMANDS: CommandTable = {
    "serve": (_SERVE, f"{_COMMANDS}.metrics_serve", "Serve the metrics from this process"),
    "port-forward": (
        _SERVE,
        f"{_COMMANDS}.metrics_port_forward",
        "Serve them on a port of this machine, from a pod where one can run",
    ),
    "deploy": (_SERVE, f"{_COMMANDS}.metrics_deploy", "Serve them from a short-lived pod on a real node"),
    "delete": (_SERVE, f"{_COMMANDS}.metrics_delete", "Delete that pod and all that was made for it"),
    "backfill": (_ONCE, f"{_COMMANDS}.metrics_backfill", "Write the history that the fleet would have had"),
    "print": (_ONCE, f"{_COMMANDS}.metrics_print", "Print what a scrape would get now"),
    "rules": (_USE, f"{_COMMANDS}.metrics_rules", "Print alert rules for Prometheus"),
    "dashboard": (_USE, f"{_COMMANDS}.metrics_dashboard", "Print a dashboard for Grafana"),
}


@click.command(cls=GhostGroup, table=SUBCOMMANDS, name="metrics")
def command() -> None:
    """Serve the DCGM metrics of the simulated GPUs, each series attributed to the pod that has the GPU.

    What dcgm-exporter would serve on every node, from one place: names, labels, order and number formats are its own.
    """
