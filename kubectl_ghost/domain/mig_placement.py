"""Which MIG instances can exist on a GPU together, and where they find room.

Every rule is a budget: a memory slice can be used once, a profile has so many instances, a GPU has so many engines,
multiprocessors and MiB. A layout is legal when no budget is exceeded, which is also how the scheduler counts shared
counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from operator import add, le

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.mig import CAPACITIES, MigInstance, MigProfile, MigTable, maxima

_WORDS = {
    "multiprocessors": "multiprocessors",
    "copyEngines": "copy engines",
    "decoders": "decoders",
    "encoders": "encoders",
    "jpegEngines": "JPEG engines",
    "ofaEngines": "OFA engines",
    "memory": "MiB of memory",
}


def check_layout(table: MigTable, instances: Sequence[MigInstance], gpu: str = "gpu-0") -> None:
    """Refuse instances that cannot exist on one GPU together.

    Raises:
        InputError: for a profile or start that the model does not have, or naming what clashes.
    """
    limits = _limits(table)
    used = (0,) * len(limits)
    for position, instance in enumerate(instances):
        used = _sum(used, _cost(table, instance, gpu))
        if not _within(used, limits):
            raise InputError(f"{gpu}: {_clash(table, instances[:position], instance)}")


def place(
    table: MigTable, profiles: Sequence[str], taken: Sequence[MigInstance] = (), gpu: str = "gpu-0"
) -> tuple[MigInstance, ...]:
    """A place for each of these profiles, in their order, beside the instances taken.

    The largest is placed first, each at the highest start that leaves room for the rest, as the driver does.

    Raises:
        InputError: naming a profile that finds no room, and what stands in its way.
    """
    check_layout(table, taken, gpu)
    wanted = [table.profile(name) for name in profiles]
    order = sorted(range(len(wanted)), key=lambda position: _largest_first(wanted[position]))
    refusals: list[_Refusal] = []
    found = _search(table, [wanted[position] for position in order], (), _used(table, taken), refusals)
    if found is None:
        # The attempt that got farthest says most; of equals the first, which is the one with the preferred starts.
        refused, beside = max(refusals, key=lambda refusal: len(refusal[1]))
        raise _no_room(table, refused, (*taken, *beside), gpu)
    placed = dict(zip(order, found, strict=True))
    return tuple(placed[position] for position in range(len(wanted)))


def layouts(table: MigTable) -> Iterator[tuple[MigInstance, ...]]:
    """Every non-empty set of instances that can exist together, each once and ordered by start."""
    limits = _limits(table)
    return _grow(list(_costs(table).items()), limits, (), (0,) * len(limits))


_Budget = tuple[int, ...]
"""One figure for each budget, in the order of _limits."""
_Refusal = tuple[MigProfile, tuple[MigInstance, ...]]
"""A profile that found no room, and the instances placed before it."""


@cache
def _limits(table: MigTable) -> _Budget:
    """The budgets: each memory slice, then the instances of each profile, then each capacity that can be counted."""
    instances = [profile.max_instances for profile in table.profiles]
    return (*(1,) * table.memory_slices, *instances, *_counted(table).values())


def _counted(table: MigTable) -> dict[str, int]:
    return {capacity: most for capacity, most in maxima(table).items() if most is not None}


@cache
def _costs(table: MigTable) -> dict[MigInstance, _Budget]:
    """What each possible instance takes of each budget, the lowest start first."""
    places = [(profile, start) for profile in table.profiles for start in profile.starts]
    places.sort(key=lambda entry: entry[1])
    costs = {}
    for profile, start in places:
        taken = _slices(profile, start)
        slices = [int(memory_slice in taken) for memory_slice in range(table.memory_slices)]
        instances = [int(other is profile) for other in table.profiles]
        capacities = [getattr(profile, CAPACITIES[capacity]) for capacity in _counted(table)]
        costs[MigInstance(profile.name, start)] = (*slices, *instances, *capacities)
    return costs


def _cost(table: MigTable, instance: MigInstance, gpu: str = "gpu-0") -> _Budget:
    cost = _costs(table).get(instance)
    if cost is not None:
        return cost
    profile = table.profile(instance.profile)
    if instance.start not in profile.starts:
        raise InputError(f"{gpu}: {profile.name} cannot start at memory slice {instance.start}", _starts(profile))
    return _costs(table)[MigInstance(profile.name, instance.start)]


def _used(table: MigTable, instances: Sequence[MigInstance]) -> _Budget:
    used: _Budget = (0,) * len(_limits(table))
    for instance in instances:
        used = _sum(used, _cost(table, instance))
    return used


def _sum(first: _Budget, second: _Budget) -> _Budget:
    return tuple(map(add, first, second))


def _within(used: _Budget, limits: _Budget) -> bool:
    return all(map(le, used, limits))


def _grow(
    options: Sequence[tuple[MigInstance, _Budget]], limits: _Budget, chosen: tuple[MigInstance, ...], used: _Budget
) -> Iterator[tuple[MigInstance, ...]]:
    # What does not fit now will not fit later either, so it is dropped once for the whole branch.
    fitting = [option for option in options if _within(_sum(used, option[1]), limits)]
    for position, (instance, cost) in enumerate(fitting):
        layout = (*chosen, instance)
        yield layout
        yield from _grow(fitting[position + 1 :], limits, layout, _sum(used, cost))


def _search(
    table: MigTable,
    profiles: Sequence[MigProfile],
    placed: tuple[MigInstance, ...],
    used: _Budget,
    refusals: list[_Refusal],
) -> tuple[MigInstance, ...] | None:
    """Instances of these profiles in their order, found by backtracking; every dead end is added to the refusals."""
    if len(placed) == len(profiles):
        return placed
    profile = profiles[len(placed)]
    below = table.memory_slices
    if placed and placed[-1].profile == profile.name:
        # Two of a kind are the same either way round: the second goes below the first.
        below = placed[-1].start
    fits = False
    for start in sorted(profile.starts, reverse=True):
        instance = MigInstance(profile.name, start)
        total = _sum(used, _costs(table)[instance])
        if not _within(total, _limits(table)):
            continue
        fits = True
        if start < below:
            found = _search(table, profiles, (*placed, instance), total, refusals)
            if found is not None:
                return found
    if not fits:
        refusals.append((profile, placed))
    return None


def _largest_first(profile: MigProfile) -> tuple[int, int, str]:
    return -profile.size, -profile.compute_slices, profile.name


def _slices(profile: MigProfile, start: int) -> range:
    return range(start, start + profile.size)


def _span(memory_slices: Sequence[int]) -> str:
    if len(memory_slices) == 1:
        return f"memory slice {memory_slices[0]}"
    return f"memory slices {memory_slices[0]}-{memory_slices[-1]}"


def _starts(profile: MigProfile) -> str:
    *others, last = [str(start) for start in profile.starts]
    return f"{profile.name} starts at {', '.join(others) + ' or ' + last if others else last}."


def _clash(table: MigTable, placed: Sequence[MigInstance], instance: MigInstance) -> str:
    """Which budgets the instance exceeds beside those placed."""
    profile = table.profile(instance.profile)
    wanted = _slices(profile, instance.start)
    for other in placed:
        held = _slices(table.profile(other.profile), other.start)
        common = [memory_slice for memory_slice in wanted if memory_slice in held]
        if common:
            return f"{other} and {instance} both need {_span(common)}"
    return _shortages(table, placed, profile)[0]


def _shortages(table: MigTable, placed: Sequence[MigInstance], profile: MigProfile) -> list[str]:
    """Of what, apart from memory slices, there is not enough for one more instance of the profile."""
    holders = [table.profile(other.profile) for other in placed]
    if holders.count(profile) >= profile.max_instances:
        return [f"{table.model} has at most {profile.max_instances} of {profile.name}"]
    shortages = []
    for capacity, most in _counted(table).items():
        needed = getattr(profile, CAPACITIES[capacity])
        held = [getattr(holder, CAPACITIES[capacity]) for holder in holders]
        if sum(held) + needed > most:
            names = ", ".join(str(other) for other, amount in zip(placed, held, strict=True) if amount)
            shortages.append(
                f"not enough {_WORDS[capacity]} for {profile.name} ({needed} needed, {sum(held)} of {most} in {names})"
            )
    return shortages


def _no_room(table: MigTable, profile: MigProfile, placed: Sequence[MigInstance], gpu: str) -> InputError:
    reachable = {memory_slice for start in profile.starts for memory_slice in _slices(profile, start)}
    free = set(range(table.memory_slices))
    reasons = []
    for other in sorted(placed, key=lambda instance: instance.start):
        held = _slices(table.profile(other.profile), other.start)
        free.difference_update(held)
        if not reachable.isdisjoint(held):
            reasons.append(f"{other} holds {_span(held)}")
    if any(free.issuperset(_slices(profile, start)) for start in profile.starts):
        reasons = _shortages(table, placed, profile)[:1]
    return InputError(f"{gpu}: no room for {profile.name}: {', '.join(reasons)}", _starts(profile))
