"""A watch that lasts: taken up again whenever the server ends it, until its time is over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Final

from kubectl_ghost.cluster import codec
from kubectl_ghost.cluster.errors import NotKubernetes, Timeout, Unreachable
from kubectl_ghost.cluster.requests import Request
from kubectl_ghost.cluster.transport import Transport
from kubectl_ghost.domain.keys import Json

_PAUSE: Final = 1.0
"""Seconds between two watches when the first brought nothing: a server that is going down ends them at once."""

_GRACE: Final = 15.0
"""Seconds without a word beyond a watch's time until the server counts as gone."""

Since = Callable[[str, int | None], Request]
"""The request for a watch from a resource version on, that the server shall end after some seconds."""


def follow(
    transport: Transport, since: Since, resource_version: str, timeout: float | None
) -> Iterator[tuple[str, Json]]:
    """Yield (type, object) for every change after `resource_version`, for `timeout` seconds.

    Bookmarks move the version forward and are not yielded.

    Raises:
        Gone: the server no longer knows the version: list again.
        ApiError: a watch could not be begun.
    """
    version = resource_version
    deadline = math.inf
    if timeout is not None:
        deadline = time.monotonic() + timeout
    while (left := deadline - time.monotonic()) > 0:
        heard = False
        try:
            for kind, item in _once(transport, since, version, left):
                heard = True
                version = item["metadata"]["resourceVersion"]
                if kind != "BOOKMARK":
                    yield kind, item
        except Timeout:
            continue
        if not heard:
            time.sleep(max(0.0, min(_PAUSE, deadline - time.monotonic())))


def once(transport: Transport, since: Since, resource_version: str, seconds: float) -> Iterator[tuple[str, Json]]:
    """Yield (type, object), bookmarks too, of one watch until the server ends it.

    The first is a bookmark of `resource_version` as soon as the watch is granted: who keeps track learns that all is
    well, though nothing may happen for long.

    Raises:
        Gone: the server no longer knows the version: list again.
        ApiError: the watch could not be begun, was cut off in the middle, or outlasted its time without a word.
    """
    request = since(resource_version, math.ceil(seconds))
    # It is the server that ends the watch; who waits longer finds out that there is no server any more.
    lines = transport.stream(request.path, request.query, timeout=seconds + _GRACE)
    yield "BOOKMARK", {"metadata": {"resourceVersion": resource_version}}
    with closing(_each(lines, forgiving=False)) as each:
        yield from _events(transport, request, each)


def _once(transport: Transport, since: Since, version: str, left: float) -> Iterator[tuple[str, Json]]:
    """One watch to its end, whatever it is: the version says where to go on."""
    seconds, timeout = None, None
    if left != math.inf:
        # The server counts whole seconds; ours is the finer clock.
        seconds, timeout = math.ceil(left), left
    request = since(version, seconds)
    lines = transport.stream(request.path, request.query, timeout=timeout)
    with closing(_each(lines, forgiving=True)) as each:
        yield from _events(transport, request, each)


def _events(transport: Transport, request: Request, lines: Iterator[bytes]) -> Iterator[tuple[str, Json]]:
    for line in lines:
        kind, item = _event(line, transport.target.server)
        if kind == "ERROR":
            from kubectl_ghost.cluster import failures

            raise failures.from_status(item, "GET", request.path)
        yield kind, item


def _event(line: bytes, server: str) -> tuple[str, Json]:
    event = codec.decode(line, server)
    kind, item = event.get("type"), event.get("object")
    if not isinstance(kind, str) or not isinstance(item, dict):
        raise NotKubernetes("not a watch's event", server)
    metadata = item.get("metadata")
    if kind != "ERROR" and not (isinstance(metadata, dict) and metadata.get("resourceVersion")):
        raise NotKubernetes("a watch's event without a version", server)
    return kind, item


def _each(lines: Iterator[bytes], *, forgiving: bool) -> Generator[bytes]:
    """The lines of an answer; to who is forgiving, being cut off in the middle is an end like any other."""
    try:
        yield from lines
    except Timeout:
        raise
    except Unreachable:
        if not forgiving:
            raise
