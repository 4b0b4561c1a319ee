"""Taking a server's or a proxy's URL apart, with one clear error for what is no URL. Pure."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from kubectl_ghost.domain.errors import GhostError

_NOT_IN_URLS: Final = re.compile(r"[\x00-\x20\x7f]")
"""urlsplit drops line breaks in silence, and others would end the request's first line."""


def split(url: str, source: str) -> SplitResult:
    """The parts of a URL with a host and, if there is one, a port that can be connected to.

    Args:
        source: where the URL was given (`--server`), for the message.

    Raises:
        GhostError: it is none.
    """
    problem = "it has a blank or a control character in it"
    if _NOT_IN_URLS.search(url) is None:
        try:
            parts = urlsplit(url)
            if parts.port != 0 and _is_host(parts.hostname or ""):
                return parts
            problem = "it names no host and port to connect to"
        except ValueError as cause:
            # urlsplit's own, or the codec's of `_is_host`.
            problem = "its host is none"
            if str(cause).startswith("Port"):
                problem = "its port is not a number from 1 to 65535"
    raise GhostError(f'invalid URL "{url}" in {source}: {problem}', "it should look like https://HOST:PORT")


def _is_host(host: str) -> bool:
    if host.isascii():
        return bool(host.strip("."))
    # The codec is slow to import, and needed for such names alone. Its error is a ValueError.
    return bool(host.encode("idna"))
