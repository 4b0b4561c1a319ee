"""`sync`: bring every node of ours back to what it is declared to have, and take away what belongs to no node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from kubectl_ghost.cluster.resources import NODES, PODS, RESOURCE_SLICES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import NodeHardware, PoolSettings, TaintMode
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.requests import RebootSigns
from kubectl_ghost.domain.resettling import with_settings
from kubectl_ghost.operations.adoption import Template, adopt_matching, check_template, followed, repair_adopted
from kubectl_ghost.operations.answering import REBOOT_SECONDS, answer_nodes
from kubectl_ghost.operations.assignments import record_assignments
from kubectl_ghost.operations.change_hardware import end_what_is_over
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.delete_pool import Deletion, delete_nodes, delete_pools, deletion
from kubectl_ghost.operations.device_classes import ensure_device_classes
from kubectl_ghost.operations.fleet import (
    OURS,
    Pool,
    adopted_of,
    hardware_of,
    pools_of,
    refuse_terminating,
    survey,
    unmarked_warnings,
)
from kubectl_ghost.operations.following_up import follow_up
from kubectl_ghost.operations.holdings import refuse_cut_off
from kubectl_ghost.operations.reconcile import bring_node, update_node
from kubectl_ghost.operations.slices import slices_by_node

_STANDARD = RebootSigns()


def sync(
    writer: Writer,
    warnings: list[str],
    signs: RebootSigns = _STANDARD,
    reboot_seconds: float = REBOOT_SECONDS,
    template: Template | None = None,
) -> Iterator[Change]:
    """Reconcile every pool in turn: the settings and the size on a pool's first node hold for all of it.

    What a kill has left half done is finished: nodes that are missing are made, those beyond the size go, and so does
    a pool that was being deleted. What ends by itself is ended, and what is asked of nodes is answered.

    Args:
        warnings: receives a line for what the server does not allow.
        signs: what counts as a request to reboot a node.
        reboot_seconds: how long such a reboot takes.
        template: which nodes of others are to be adopted.

    Raises:
        GhostError: before anything is written, if there is no such pool to adopt for; before anything but the end of
            what is over is written, if finishing a pool's change would take GPUs from pods; after all the others have
            been reconciled, if a declaration cannot be read.
    """
    if template is not None:
        check_template(writer, template)
    yield from end_what_is_over(writer)
    fleet = _look(writer, warnings)
    yield from ensure_device_classes(writer, fleet.all_settings, warnings, unread=bool(fleet.problems))
    for pool in fleet.pools.values():
        yield from _sync_pool(writer, pool, fleet.slices, real=fleet.real)
    yield from repair_adopted(writer, fleet.adopted, fleet.follows, fleet.slices)
    yield from _delete_strays(writer, fleet)
    if template is not None:
        yield from adopt_matching(writer, template, warnings)
    yield from _follow_up(writer, fleet)
    # As they were read: a request on one that has changed since is read again where it is answered.
    nodes = [node for node, _ in fleet.settled.values()]
    yield from answer_nodes(writer, nodes, signs, reboot_seconds, warnings.append)
    if fleet.ending is not None:
        yield from delete_pools(writer, fleet.ending, warnings)
    if fleet.problems:
        raise fleet.problems[0]


@dataclass(frozen=True, slots=True)
class _Fleet:
    """What sync has found, and what it is going to make of it.

    Attributes:
        nodes: every node of ours.
        everything: all pools; `pools` are those that stay and can be read, with their `settings`.
        adopted: the adopted nodes that stay and can be read, with the settings that they follow.
        ending: the pools whose deletion was interrupted.
        real: whether there are nodes that nobody simulates.
        problems: what cannot be read.
    """

    nodes: list[Json]
    slices: Mapping[str, list[Json]]
    everything: Mapping[str, Pool]
    pools: Mapping[str, Pool]
    settings: Mapping[str, PoolSettings]
    adopted: Mapping[str, Json]
    follows: Mapping[str, PoolSettings]
    ending: Deletion | None
    real: bool
    problems: list[GhostError]

    @property
    def all_settings(self) -> list[PoolSettings]:
        """The settings that there are going to be."""
        return [*self.settings.values(), *self.follows.values()]

    @property
    def settled(self) -> dict[str, tuple[Json, PoolSettings]]:
        """Every node that stays, with the settings that it has then."""
        own = {
            name: (node, self.settings[pool.name])
            for pool in self.pools.values()
            for name, node in pool.by_name.items()
        }
        return {**own, **{name: (node, self.follows[name]) for name, node in self.adopted.items()}}


def _look(writer: Writer, warnings: list[str]) -> _Fleet:
    found = survey(writer)
    warnings += unmarked_warnings(found)
    real = bool(found.real)
    # Slices before nodes: one that is published in between then has its node in the list and is no stray.
    slices = slices_by_node(writer, OURS)
    nodes = writer.list(NODES, label_selector=OURS).items
    everything = pools_of(nodes)
    readable, problems = _readable(everything)
    going = [pool.name for pool in readable.values() if pool.size == 0]
    pools = {name: pool for name, pool in readable.items() if pool.size}
    refuse_terminating(node for pool in pools.values() for node in pool.nodes.values())
    settings = {name: _settings(pool.settings, real=real) for name, pool in pools.items()}
    for name, pool in pools.items():
        refuse_cut_off(writer, pool.by_name, settings[name])
    ending = deletion(nodes, going) if going else None
    adopted, damaged = _readable_adopted(nodes, set(ending.returning) if ending else set())
    follows = followed(writer, adopted, settings, warnings)
    return _Fleet(nodes, slices, everything, pools, settings, adopted, follows, ending, real, [*problems, *damaged])


def _readable(pools: Mapping[str, Pool]) -> tuple[dict[str, Pool], list[GhostError]]:
    """The pools all of whose declarations can be read, and what is wrong with the others."""
    good, problems = {}, []
    for name, pool in pools.items():
        try:
            for node in pool.nodes.values():
                hardware_of(node)
        except GhostError as error:
            problems.append(error)
        else:
            good[name] = pool
    return good, problems


def _readable_adopted(nodes: list[Json], going: Collection[str]) -> tuple[dict[str, Json], list[GhostError]]:
    """The adopted nodes that stay and can be read, and what is wrong with the others."""
    good, problems = {}, []
    for name, node in adopted_of(nodes).items():
        if name in going or node["metadata"].get("deletionTimestamp"):
            continue
        try:
            hardware_of(node)
        except GhostError as error:
            problems.append(error)
        else:
            good[name] = node
    return good, problems


def _settings(declared: PoolSettings, *, real: bool) -> PoolSettings:
    return replace(declared, tainted=real) if declared.taint is TaintMode.AUTO else declared


def _sync_pool(writer: Writer, pool: Pool, slices: Mapping[str, list[Json]], *, real: bool) -> Iterator[Change]:
    first, *others = pool.nodes
    name = pool.first["metadata"]["name"]
    changes = update_node(
        writer,
        pool.first,
        lambda declared: with_settings(declared, _settings(declared.settings, real=real)),
        slices.get(name, []),
    )
    yield from changes
    settings = hardware_of(changes[0].body).settings

    def reread() -> None:
        nonlocal settings
        settings = hardware_of(writer.get(NODES, name)).settings

    def repair(index: int) -> list[Change]:
        def declare() -> NodeHardware:
            return NodeHardware(settings, index, pool.size if index == 0 else None)

        # Whoever writes to the pool at this moment may have given it other settings than were listed: hence reread.
        return bring_node(writer, pool.nodes.get(index), declare, slices.get(f"{pool.name}-{index}", []), reread)

    wanted = {index for index in {*others, *range(pool.size)} if index < pool.size} - {first}
    for changes in run_ordered(repair, sorted(wanted)):
        yield from changes
    if pool.surplus and Pool(pool.name, {first: writer.get(NODES, name)}).size == pool.size:
        yield from delete_nodes(writer, pool.surplus)


def _delete_strays(writer: Writer, fleet: _Fleet) -> Iterator[Change]:
    pools, slices = fleet.everything, fleet.slices
    present = {name for pool in pools.values() for name in pool.by_name} | set(adopted_of(fleet.nodes))
    # Those that were missing have been made meanwhile.
    present |= {f"{name}-{index}" for name, pool in pools.items() for index in range(_declared_size(pool))}
    for name, items in slices.items():
        for item in items if name not in present else ():
            writer.delete(RESOURCE_SLICES, item)
            yield Change(RESOURCE_SLICES, Verb.DELETED, item)


def _declared_size(pool: Pool) -> int:
    try:
        return pool.size
    except GhostError:
        return 0


def _follow_up(writer: Writer, fleet: _Fleet) -> Iterator[Change]:
    nodes = {name: node for name, (node, _) in fleet.settled.items()}
    hardware = {name: with_settings(hardware_of(node), settings) for name, (node, settings) in fleet.settled.items()}
    counting = {name: declared for name, declared in hardware.items() if declared.settings.advertise.capacity}
    pods = writer.list(PODS, field_selector="spec.nodeName!=").items if counting else []
    yield from record_assignments(writer, nodes, counting, pods)
    everyone = {node["metadata"]["name"]: node for node in fleet.nodes}
    yield from follow_up(writer, everyone, hardware)
