"""The command line: a table of commands, the global flags and one funnel from error to exit code.

Nothing here imports a command, kubernetes or yaml: `--help` and a mistyped word must answer at once.
"""

from __future__ import annotations

import io
import sys

import click

from kubectl_ghost import __version__
from kubectl_ghost.conventions.command import CommandTable, GhostGroup
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.domain.errors import GhostError

_COMMANDS = "kubectl_ghost.commands"
COMMANDS: CommandTable = {
    "add-pool": ("Fleet", f"{_COMMANDS}.add_pool", "Create or reconfigure a pool of simulated GPU nodes"),
    "scale-pool": ("Fleet", f"{_COMMANDS}.scale_pool", "Set the number of nodes of a pool"),
    "delete-pool": ("Fleet", f"{_COMMANDS}.delete_pool", "Delete pools with their nodes and the pods on them"),
    "sync": ("Fleet", f"{_COMMANDS}.sync", "Bring every node back to its declared hardware"),
    "mig-split": ("Hardware", f"{_COMMANDS}.mig_split", "Split GPUs into MIG devices, or make them whole again"),
    "fault": ("Hardware", f"{_COMMANDS}.fault", "Break GPUs and nodes, look at what is broken, and mend it"),
    "occupy": ("Hardware", f"{_COMMANDS}.occupy", "Make GPUs busy before any workload exists"),
    "release": ("Hardware", f"{_COMMANDS}.release", "Free GPUs that occupy has made busy"),
    "drain": ("Hardware", f"{_COMMANDS}.drain", "Evict the pods of simulated nodes, and reboot them if asked to"),
    "cordon": ("Hardware", f"{_COMMANDS}.cordon", "Mark simulated nodes as unschedulable"),
    "uncordon": ("Hardware", f"{_COMMANDS}.uncordon", "Mark simulated nodes as schedulable again"),
    "get": ("Look", f"{_COMMANDS}.get", "Display pools, nodes, GPUs or faults"),
    "status": ("Look", f"{_COMMANDS}.status", "Show the fleet and who holds which GPU"),
    "metrics": ("Metrics", f"{_COMMANDS}.metrics", "Serve the DCGM metrics of the simulated GPUs"),
    "cluster": ("Engine", f"{_COMMANDS}.cluster", "Run a local control plane with kwok to put the fleet on"),
    "stages": ("Engine", f"{_COMMANDS}.stages", "Print the kwok stages for clusters that others made"),
    "options": ("Other", f"{_COMMANDS}.options", "List the global command-line options"),
    "version": ("Other", f"{_COMMANDS}.version", "Print the version of this tool and of the server"),
}


@click.command(cls=GhostGroup, table=COMMANDS, name="kubectl ghost")
@click.version_option(__version__, message="kubectl-ghost %(version)s")
def root() -> None:
    """Conjure GPU fleets that do not exist on a Kubernetes cluster that does.

    The nodes, GPUs and ResourceSlices are simulated with kwok; the scheduler and controllers that decide over them
    are the cluster's own.
    """


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; every error that a user can meet is printed here."""
    _replace_closed_streams()
    try:
        result = root.main(args=arguments, prog_name="kubectl ghost", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.UsageError as error:
        return _usage(error)
    except click.ClickException as error:
        return _fail(f"error: {error.format_message()}")
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; what was begun can be finished by running the same command again", err=True)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing can be told to anyone, and Python must not try again at exit.
        sys.stdout = None
        return ExitCode.ERROR
    except OSError as error:
        # Whatever can go wrong with the cluster or with files of ours is a GhostError: this is about the output.
        sys.stdout = None
        return _fail(f"error: {error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
    except GhostError as error:
        text = error.message if getattr(error, "bare", False) else f"error: {error.message}"
        return _fail(text + (f"\n{error.hint}" if error.hint else ""))
    return result if isinstance(result, int) else ExitCode.OK


def _replace_closed_streams() -> None:
    """Python has no stream where the caller closed one (`>&-`); what is written there is for nobody."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, io.StringIO())


def _usage(error: click.UsageError) -> int:
    click.echo(f"error: {error.format_message()}", err=True)
    if error.ctx:
        click.echo(f"See '{error.ctx.command_path} --help' for usage.", err=True)
    return ExitCode.USAGE


def _fail(text: str) -> int:
    click.echo(text, err=True)
    return ExitCode.ERROR
