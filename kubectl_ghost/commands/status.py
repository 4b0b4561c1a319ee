"""`kubectl ghost status`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kubectl_ghost.conventions.command import GhostCommand

if TYPE_CHECKING:
    from kubectl_ghost.domain.keys import Json
    from kubectl_ghost.operations.inventory import Inventory


@click.command(cls=GhostCommand)
@click.option("--node", help="Show this node alone, GPU by GPU")
@click.option("-o", "--output", metavar="FORMAT", help="Output format. One of: (json, yaml)")
@click.pass_context
def command(context: click.Context, node: str | None, output: str | None) -> int:
    """Show the fleet and who holds which GPU.

    Lists the pools, the workloads that hold their GPUs, and the pods that wait for one with the scheduler's reason.
    """
    from kubectl_ghost.commands.output import write
    from kubectl_ghost.commands.session import reader, warn
    from kubectl_ghost.conventions.messages import not_found
    from kubectl_ghost.operations.inventory import read_inventory
    from kubectl_ghost.render.printers import printer

    if output not in (None, "json", "yaml"):
        raise click.UsageError(f'unknown output format "{output}": use json or yaml', context)
    inventory = read_inventory(
        reader(context), field_selector=f"metadata.name={node}" if node else None, whole=node is not None
    )
    warn(inventory.problems)
    if node and node not in inventory.nodes:
        click.echo(not_found("nodes", node), err=True)
        return 1
    if output:
        write(printer(output, single=True)([_document(inventory, node)]))
    elif not inventory.nodes:
        click.echo("No simulated GPU nodes found. Create some with: kubectl ghost add-pool", err=True)
    else:
        write(_tables(inventory, node))
        warn(_doubled(inventory))
    return 0


def _doubled(inventory: Inventory) -> list[str]:
    shared = inventory.shared()
    if not shared:
        return []
    some = ", ".join("/".join(key) for key in shared[:3]) + (" ..." if len(shared) > 3 else "")
    return [f"{len(shared)} GPU(s) handed out twice, by a claim and as nvidia.com/gpu: {some}"]


def _tables(inventory: Inventory, node: str | None) -> Iterator[str]:
    from datetime import UTC, datetime

    from kubectl_ghost.operations.views import gpu_views, pool_views, waiting_views, workload_views
    from kubectl_ghost.render.columns import table
    from kubectl_ghost.render.fleet_columns import (
        WAITING_COLUMNS,
        WORKLOAD_COLUMNS,
        gpu_columns,
        node_columns,
        pool_columns,
    )

    now = datetime.now(UTC)
    if node:
        columns = node_columns(now, inventory.held_on, inventory.free_on)
        yield from table(columns, list(inventory.nodes.values()), wide=True)
        yield "\n"
        yield from table(gpu_columns(now), gpu_views(inventory), wide=True)
        return
    yield from table(pool_columns(now), pool_views(inventory))
    for columns, rows in ((WORKLOAD_COLUMNS, workload_views(inventory)), (WAITING_COLUMNS, waiting_views(inventory))):
        if rows:
            yield "\n"
            yield from table(columns, rows)


def _document(inventory: Inventory, node: str | None) -> Json:
    from kubectl_ghost.operations.inventory import VIEW_VERSION
    from kubectl_ghost.operations.views import gpu_views, pool_views, waiting_views, workload_views

    document: Json = {
        "apiVersion": VIEW_VERSION,
        "kind": "FleetStatus",
        "pools": pool_views(inventory),
        "workloads": workload_views(inventory),
        "waiting": waiting_views(inventory),
        "doubledGpus": ["/".join(key) for key in inventory.shared()],
    }
    if node:
        document["gpus"] = gpu_views(inventory)
    return document
