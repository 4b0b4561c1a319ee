"""Flags with which commands are told which GPUs are meant, spelled the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import click

from kubectl_ghost.domain.selection import Selection

F = TypeVar("F", bound=Callable[..., Any])

_TARGETS = (
    click.argument("words", nargs=-1, metavar="[TARGET]..."),
    click.option("--pool", help="All nodes of this pool"),
    click.option("-l", "--selector", help="Selector (label query) to filter on: the simulated nodes that match"),
    click.option("--all", "everything", is_flag=True, help="All simulated nodes"),
)
_RANDOM = (
    click.option(
        "--random",
        "number",
        type=click.IntRange(min=1),
        metavar="N",
        help="Only so many GPUs, drawn from those that are meant (from all simulated GPUs if none are named)",
    ),
    click.option(
        "--seed", type=int, default=1, show_default=True, metavar="N", help="The same seed always draws the same GPUs"
    ),
)


def target_options(function: F) -> F:
    """TARGET..., --pool, -l/--selector and --all, as one `selection`."""

    @wraps(function)
    def selecting(*args: Any, words: tuple[str, ...], everything: bool, **given: Any) -> Any:
        selection = Selection(words, given.pop("pool"), given.pop("selector"), everything)
        return function(*args, selection=selection, **given)

    return _all_of(_TARGETS, cast("F", selecting))


def random_options(function: F) -> F:
    """--random and --seed, as `number` (None if not given) and `seed`."""
    return _all_of(_RANDOM, function)


def _all_of(options: Sequence[Callable[[F], F]], function: F) -> F:
    for option in reversed(options):
        function = option(function)
    return function
