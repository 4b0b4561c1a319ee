"""The flag of commands whose output is about the labels of dcgm-exporter's series in a Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def label_option(function: F) -> F:
    """--label, handed on as `names`."""
    return click.option(
        "--label",
        "names",
        multiple=True,
        metavar="NAME=OTHER",
        help="The name under which Prometheus keeps a label of dcgm-exporter, where it differs, such as "
        "pod=exported_pod, Hostname=hostname or UUID=uuid; this flag can be repeated",
    )(function)
