"""`kubectl ghost fault`: the group; the module behind a subcommand is loaded when it is called."""

from __future__ import annotations

import importlib

import click

from kubectl_ghost.conventions.command import CommandTable, GhostGroup

_COMMANDS = "kubectl_ghost.commands"
_INJECT = f"{_COMMANDS}.fault_inject"
_GPUS, _NODES, _LOOK = "Break GPUs", "Break nodes", "Look and mend"
SUBCOMMANDS: CommandTable = {
    "xid": (_GPUS, _INJECT, "An error that the driver reports by its number, 79 unless told otherwise"),
    "gpu-lost": (_GPUS, _INJECT, "The driver no longer finds the GPU"),
    "nvlink-down": (_GPUS, _INJECT, "An NVLink of the GPU is down"),
    "ecc": (_GPUS, _INJECT, "Errors of the GPU's memory"),
    "thermal": (_GPUS, _INJECT, "The GPU lowers its clocks because it is hot"),
    "power": (_GPUS, _INJECT, "The GPU lowers its clocks for want of power"),
    "slow": (_GPUS, _INJECT, "The GPU works slower than its peers, and nothing reports it"),
    "pcie": (_GPUS, _INJECT, "PCIe transfers of the GPU are repeated"),
    "driver-crash": (_NODES, _INJECT, "The driver stops: no GPU of the node can be allocated"),
    "node-down": (_NODES, _INJECT, "The node goes NotReady"),
    "node-unreachable": (_NODES, _INJECT, "The control plane no longer hears from the node"),
    "list": (_LOOK, f"{_COMMANDS}.fault_list", "List the faults that are declared"),
    "clear": (_LOOK, f"{_COMMANDS}.fault_clear", "Take faults away, with all that they brought about"),
    "explain": (_LOOK, f"{_COMMANDS}.fault_explain", "Say what a fault means, who reacts to it and how"),
}


class FaultGroup(GhostGroup):
    """A group in which the kinds of fault share one module, which makes a command for each."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, made from the group's own line of help where it breaks something."""
        _, module, summary = self.table.get(cmd_name, ("", "", ""))
        if module != _INJECT:
            return super().get_command(ctx, cmd_name)
        made: click.Command = importlib.import_module(module).injection(cmd_name, summary)
        return made


@click.command(cls=FaultGroup, table=SUBCOMMANDS, name="fault")
def command() -> None:
    """Break GPUs and nodes, look at what is broken, and mend it.

    A fault is declared on the node. What follows is what the components that notice it would do: by default NVIDIA's
    device plugin and DRA driver, whose NoSchedule is made NoExecute so that pods move; --as names others.
    """
