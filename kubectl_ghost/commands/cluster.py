"""`kubectl ghost cluster`: the group; a subcommand's module is loaded when it is called."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import CommandTable, GhostGroup

_COMMANDS = "kubectl_ghost.commands"
SUBCOMMANDS: CommandTable = {
    "up": ("Available Commands", f"{_COMMANDS}.cluster_up", "Create a cluster, or start it again"),
    "down": ("Available Commands", f"{_COMMANDS}.cluster_down", "Delete a cluster"),
    "status": ("Available Commands", f"{_COMMANDS}.cluster_status", "Show the components of a cluster"),
    "list": ("Available Commands", f"{_COMMANDS}.cluster_list", "List the clusters"),
    "build": ("Available Commands", f"{_COMMANDS}.cluster_build", "Build the control plane's binaries ahead of time"),
}


@click.command(cls=GhostGroup, table=SUBCOMMANDS, name="cluster")
def command() -> None:
    """Run a local control plane with kwok: a real API server, scheduler and controller manager, and no node.

    The binaries come from --bin-dir, from this tool's cache, from PATH, or are built once with the go command. No
    container runtime is needed, and neither your kubeconfig nor ~/.kwok is touched.
    """
