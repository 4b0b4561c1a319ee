"""`scale-pool`: a pool of another size, its settings as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.pools import PoolRequest
from kubectl_ghost.operations.add_pool import PoolPlan, apply_pool, plan_pool
from kubectl_ghost.operations.changes import Change
from kubectl_ghost.operations.delete_pool import delete_nodes


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """What stays or comes, as add-pool writes it, and the nodes that go, by name."""

    grow: PoolPlan
    surplus: Mapping[str, Json]


def plan_scale(reader: Reader, name: str, size: int, *, allow_mixed: bool = False) -> ScalePlan:
    """Decide what to write; nothing is written.

    Raises:
        GhostError: if the pool is unknown, or the size is 0: a pool lives on its nodes.
    """
    if size == 0:
        raise InputError(
            f'cannot scale pool "{name}" to 0: a pool lives on its nodes', f"Use: kubectl ghost delete-pool {name}"
        )
    plan = plan_pool(reader, name, size, PoolRequest(), allow_mixed=allow_mixed, exactly=True)
    going = sorted((index for index in plan.existing if index >= size), reverse=True)
    surplus = {node["metadata"]["name"]: node for node in (plan.existing[index] for index in going)}
    staying = {index: node for index, node in plan.existing.items() if index < size}
    return ScalePlan(replace(plan, existing=staying), surplus)


def scale(writer: Writer, plan: ScalePlan) -> Iterator[Change]:
    """Write the plan: nodes that stay or come first, then the surplus goes, highest number first."""
    yield from apply_pool(writer, plan.grow)
    if plan.surplus:
        yield from delete_nodes(writer, plan.surplus)
