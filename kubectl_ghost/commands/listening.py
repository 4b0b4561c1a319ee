"""The flags of commands that listen on a port of this machine, and the address that they tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def listening_options(function: F) -> F:
    """--port and --address."""
    port = click.option(
        "--port", type=click.IntRange(0, 65535), default=9400, show_default=True, help="0 for any free one"
    )
    address = click.option(
        "--address", default="127.0.0.1", show_default=True, callback=_named, help="The address to listen on"
    )
    return port(address(function))


def metrics_url(address: str, port: int) -> str:
    """Where the metrics are, for a browser on this machine."""
    host = "localhost" if address in ("127.0.0.1", "::1") else address
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}/metrics"


def _named(_context: click.Context, _parameter: click.Parameter, address: str) -> str:
    """An empty one, of a variable that is not set say, would mean every address of the machine."""
    if not address:
        raise click.BadParameter("it is empty; 0.0.0.0 is every address of this machine")
    return address
