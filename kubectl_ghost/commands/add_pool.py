"""`kubectl ghost add-pool`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.flags import allow_mixed_option, changing_options, waiting_options
from kubectl_ghost.domain.dry_run import DryRun

_EPILOG = """\b
Examples:
  # Four nodes with eight H100 each, node-0 to node-3
  kubectl ghost add-pool

\b
  # A hundred nodes of eight B200 in three zones
  kubectl ghost add-pool train --gpu b200 --count 100 --zones a,b,c

\b
  # Nodes that offer nvidia.com/gpu only, as before DRA
  kubectl ghost add-pool classic --gpu a100 --advertise device-plugin

\b
  # GPUs that the scheduler splits as claims ask for MIG devices
  kubectl ghost add-pool flexible --mig dynamic

\b
  # Four pods a GPU
  kubectl ghost add-pool shared --gpu l4 --sharing time-slicing=4
"""


@click.command(cls=GhostCommand, epilog=_EPILOG)
@click.argument("name", default="node", metavar="[NAME]")
@click.option("--gpu", "model", help="GPU model, such as h100, b200 or l40s (default h100)")
@click.option("--count", type=int, help="Number of nodes (default 4); an existing pool is never shrunk")
@click.option("--gpus-per-node", "gpus", type=int, help="GPUs a node, 1 to 128 (default: as the model's boards have)")
@click.option(
    "--advertise",
    type=click.Choice(["both", "dra", "device-plugin"]),
    help="Offer the GPUs as DRA devices, as nvidia.com/gpu capacity, or both (default both)",
)
@click.option(
    "--mig",
    type=click.Choice(["static", "dynamic"]),
    help="Who splits GPUs into MIG devices: you, with mig-split, or the scheduler as claims need it (default static)",
)
@click.option(
    "--mig-strategy",
    type=click.Choice(["none", "single", "mixed"]),
    help="How split GPUs are counted and labelled, as the device plugin's own flag says it (default mixed)",
)
@click.option(
    "--sharing",
    metavar="time-slicing=N|mps=N|none",
    help="Let N pods share each nvidia.com/gpu, as the device plugin does it (default none)",
)
@click.option(
    "--rename-by-default", "renamed", is_flag=True, help="With --sharing: count the shares as nvidia.com/gpu.shared"
)
@click.option("--cpu", help="CPUs a node (default: by the number of GPUs)")
@click.option("--memory", help="Memory a node, such as 2048Gi (default: by the number of GPUs)")
@click.option("--pods", type=int, help="Pods a node (default 110)")
@click.option("--labels", multiple=True, metavar="KEY=VALUE", help="Labels of the nodes (comma separated or repeated)")
@click.option("--taints", multiple=True, metavar="KEY=VALUE:EFFECT", help="Taints of the nodes")
@click.option(
    "--taint",
    type=click.Choice(["auto", "always", "never"]),
    help="kwok's own taint on the nodes; auto: where the cluster has nodes that are not simulated (default auto)",
)
@click.option("--zones", multiple=True, help="Zones, dealt out to the nodes in turn")
@click.option("--racks", multiple=True, help="Racks, dealt out to the nodes in turn")
@allow_mixed_option
@click.option("--force", is_flag=True, help="Evict pods whose GPUs the new settings take away")
@waiting_options
@changing_options
@click.pass_context
def command(
    context: click.Context,
    /,
    name: str,
    count: int | None,
    allow_mixed: bool,
    force: bool,
    wait: bool,
    timeout: float,
    dry_run: DryRun,
    output: str | None,
    **settings: Any,
) -> None:
    """Create a pool of simulated GPU nodes, or reconfigure it.

    NAME is the pool's name (default "node"); its nodes are NAME-0, NAME-1 and so on. Run again with other flags, the
    pool takes the new settings; what is not given stays as it is.
    """
    from kubectl_ghost.commands.output import check_change_output, print_changes
    from kubectl_ghost.commands.session import announce, warn, writer
    from kubectl_ghost.commands.waiting import wait_for_nodes
    from kubectl_ghost.domain.pools import MOST_NODES, check_range
    from kubectl_ghost.operations.add_pool import apply_pool, plan_pool

    if settings["renamed"] and settings["sharing"] is None:
        raise click.UsageError("--rename-by-default goes with --sharing: give both, also for a shared pool", context)
    if count is not None:
        check_range("--count", count, 1, MOST_NODES)
    check_change_output(output)
    connection = writer(context, dry_run, output)
    plan = plan_pool(connection, name, count, _request(settings), allow_mixed=allow_mixed, force=force)
    if plan.first_of_cluster and dry_run is DryRun.NONE:
        announce(context)
    warn(plan.warnings)
    changes = print_changes(apply_pool(connection, plan), output, dry_run)
    warn(plan.warnings)
    if wait and dry_run is DryRun.NONE:
        wait_for_nodes(connection, name, changes, timeout)


def _request(settings: dict[str, Any]) -> Any:
    from kubectl_ghost.domain.hardware import Advertise, MigMode, MigStrategy, TaintMode
    from kubectl_ghost.domain.naming import parse_labels, parse_taints, parse_words
    from kubectl_ghost.domain.pools import PoolRequest
    from kubectl_ghost.domain.sharing import parse_sharing

    parsers: dict[str, Callable[[Any], Any]] = {
        "advertise": Advertise,
        "taint": TaintMode,
        "labels": parse_labels,
        "taints": parse_taints,
        "zones": parse_words,
        "racks": parse_words,
        "mig": MigMode,
        "mig_strategy": MigStrategy,
        "sharing": partial(parse_sharing, renamed=settings["renamed"]),
    }
    given = {key: value for key, value in settings.items() if value not in (None, ()) and key != "renamed"}
    return PoolRequest(**{key: parsers[key](value) if key in parsers else value for key, value in given.items()})
