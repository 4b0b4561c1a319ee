"""Doing one thing to many objects at a time, with the results in order.

Sixteen threads is where more bring nothing: by then the API server, or the GIL, is what there is to wait for.

Plain threads rather than concurrent.futures: its import costs as much as several requests, and at exit it waits for
its threads whatever happens. These are daemons, so that a second Ctrl-C can leave a request that never ends behind.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

WORKERS: Final = 16
_AHEAD: Final = 4
"""How many items for each worker are taken from the input ahead of the result that is waited for."""


class _Task(Generic[T, R]):
    """One item and, once `done`, what became of it: a result, an error, or neither when it was not begun any more."""

    __slots__ = ("done", "error", "item", "result")

    def __init__(self, item: T) -> None:
        self.item = item
        self.done = threading.Event()
        self.result: tuple[R] | None = None
        self.error: BaseException | None = None


def run_ordered(function: Callable[[T], R], items: Iterable[T], *, workers: int = WORKERS) -> Iterator[R]:
    """Call `function` on every item, `workers` at a time, and yield the results in the order of the items.

    The input is taken as it is needed, so it may be endless. After an error nothing more is begun; what was under way
    is waited for and its results are still yielded, since it has happened; then the first error is raised, the others
    noted on it. The same on Ctrl-C or when the iterator is closed: nothing begins, what is under way ends. A second
    Ctrl-C no longer waits for that.

    Raises:
        Exception: whatever `function` raised first in the order of the items.
    """
    stop = threading.Event()
    queue: SimpleQueue[_Task[T, R] | None] = SimpleQueue()
    source = iter(items)
    pending: deque[_Task[T, R]] = deque()

    def take(count: int) -> None:
        for item in islice(source, count):
            pending.append(_Task(item))
            queue.put(pending[-1])

    threads: list[threading.Thread] = []
    errors: list[Exception] = []
    try:
        take(workers * _AHEAD)
        for number in range(min(workers, len(pending))):
            thread = threading.Thread(target=_work, args=(function, queue, stop), name=f"ghost-{number}", daemon=True)
            thread.start()
            threads.append(thread)
        while pending:
            result = _outcome(pending.popleft(), errors)
            if not stop.is_set():
                take(1)
            if result is not None:
                yield result[0]
    except BaseException:
        stop.set()
        # Ctrl-C while waiting here is the second as a rule: the first is why nothing more begins, and goes on to the
        # caller. A request may wait for its server for ever, and its thread cannot be ended: it ends with the process.
        with contextlib.suppress(KeyboardInterrupt):
            _end(threads, queue)
        raise
    _end(threads, queue)
    if errors:
        raise _combined(errors)


def _work(function: Callable[[T], R], queue: SimpleQueue[_Task[T, R] | None], stop: threading.Event) -> None:
    while (task := queue.get()) is not None:
        try:
            if not stop.is_set():
                task.result = (function(task.item),)
        except BaseException as error:
            stop.set()
            task.error = error
        finally:
            task.done.set()


def _outcome(task: _Task[T, R], errors: list[Exception]) -> tuple[R] | None:
    task.done.wait()
    if isinstance(task.error, Exception):
        errors.append(task.error)
    elif task.error is not None:
        raise task.error
    return task.result


def _end(threads: list[threading.Thread], queue: SimpleQueue[_Task[T, R] | None]) -> None:
    """Let every thread finish what it is at, and wait for it."""
    for _ in threads:
        queue.put(None)
    for thread in threads:
        thread.join()


def _combined(errors: list[Exception]) -> Exception:
    first, *others = errors
    for other in others:
        first.add_note(f"also: {other}")
    return first
