"""The head of an HTTP/1.1 request as bytes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, quote

from kubectl_ghost import __version__
from kubectl_ghost.domain.errors import GhostError

_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SAFE_IN_PATHS: Final = "/%:@!$&'()*+,;=~"


def head(method: str, url: SplitResult, place: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """All of a request but its body.

    Args:
        url: the server's; its path stands before `place`.
        place: path and query, encoded already.

    Raises:
        GhostError: a header cannot be sent as it is; its value is not shown, since it may be a secret.
    """
    host = url.netloc.rpartition("@")[2]
    if not host.isascii():
        host = host.encode("idna").decode()
    lines = [
        f"{method} {quote(url.path, safe=_SAFE_IN_PATHS)}{place} HTTP/1.1",
        f"Host: {host}",
        f"User-Agent: kubectl-ghost/{__version__}",
    ]
    for name, value in headers:
        if _CONTROL.search(value):
            raise GhostError(f"the {_WORDS.get(name, name)} has a line break or another control character in it")
        lines.append(f"{name}: {value}")
    try:
        # What the shell gave us goes out byte for byte, as from kubectl, be it UTF-8 or not.
        return "\r\n".join([*lines, "", ""]).encode(errors="surrogateescape")
    except UnicodeError as cause:
        raise GhostError("a token or the name of a user to impersonate is not text that can be sent") from cause


_WORDS: Final = {
    "Authorization": "token or password",
    "Impersonate-User": "user to impersonate (--as)",
    "Impersonate-Group": "group to impersonate (--as-group)",
    "Impersonate-Uid": "UID to impersonate (--as-uid)",
}
