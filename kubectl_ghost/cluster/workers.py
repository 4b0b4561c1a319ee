"""Doing one thing to many objects at a time, with the results in order.

Sixteen threads is where more bring nothing: by then the API server, or the GIL, is what there is to wait for.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

WORKERS: Final = 16
_AHEAD: Final = 4
"""How many items for each worker are taken from the input ahead of the result that is waited for."""


def run_ordered(function: Callable[[T], R], items: Iterable[T], *, workers: int = WORKERS) -> Iterator[R]:
    """Call `function` on every item, `workers` at a time, and yield the results in the order of the items.

    The input is taken as it is needed, so it may be endless. After an error nothing more is begun; what was under way
    is waited for and its results are still yielded, since it has happened; then the first error is raised, the others
    noted on it. The same on Ctrl-C or when the iterator is closed: nothing begins, what is under way ends.

    Raises:
        Exception: whatever `function` raised first in the order of the items.
    """
    from concurrent.futures import ThreadPoolExecutor

    stop = threading.Event()

    def call(item: T) -> tuple[R] | None:
        if stop.is_set():
            return None
        try:
            return (function(item),)
        except BaseException:
            stop.set()
            raise

    source = iter(items)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="ghost")
    try:
        pending = deque(pool.submit(call, item) for item in islice(source, workers * _AHEAD))
        failures: list[Exception] = []
        while pending:
            result = _result(pending.popleft(), failures)
            if not stop.is_set():
                pending.extend(pool.submit(call, item) for item in islice(source, 1))
            if result is not None:
                yield result[0]
        if failures:
            raise _combined(failures)
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[tuple[R] | None], failures: list[Exception]) -> tuple[R] | None:
    try:
        return future.result()
    except Exception as error:
        failures.append(error)
        return None


def _combined(failures: list[Exception]) -> Exception:
    first, *others = failures
    for other in others:
        first.add_note(f"also: {other}")
    return first
