"""Durations as values of flags, the way kubectl's take them."""

from __future__ import annotations

from typing import Any

import click

from kubectl_ghost.domain.durations import parse_duration


class Duration(click.ParamType[float]):
    """click's view of `parse_duration`: the value is a number of seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds, from text or from a default that is a number already."""
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION = Duration()
