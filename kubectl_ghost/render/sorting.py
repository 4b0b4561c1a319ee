"""`--sort-by=.metadata.name`: the rows in the order of a field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.render.gotext import go_type
from kubectl_ghost.render.jsonpath import JsonPath, parse_relaxed
from kubectl_ghost.render.jsonpath_nodes import JsonPathError

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([eE][+-]?[0-9]{1,2}|[KMGTPE]i|[numkMGTPE])?")
_POWERS = {"n": -3, "u": -2, "m": -1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_SUFFIXES = {suffix: Decimal(1000) ** power for suffix, power in _POWERS.items()}
_SUFFIXES |= {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)}


def sort_by(rows: Iterable[Json], expression: str) -> list[Json]:
    """Sort rows by what a JSONPath expression finds first in each.

    Numbers sort as numbers, false before true, strings that are all quantities (`500m`, `1Ti`) as quantities, other
    strings by code point. Rows without the field come first; rows that are equal in it keep their order.

    Raises:
        InputError: the expression is none, no row has the field, or its values cannot be put in order.
    """
    rows = list(rows)
    path = _parse(expression)
    values = [_first(path, row) for row in rows]
    if rows and not any(values):
        raise InputError(f"couldn't find any field with path {json.dumps(path.source)} in the list of objects")
    keys = _keys([value[0] if value else None for value in values], path.source)
    return [rows[index] for index in sorted(range(len(rows)), key=keys.__getitem__)]


def _parse(expression: str) -> JsonPath:
    try:
        return parse_relaxed(expression)
    except JsonPathError as error:
        raise InputError(f"sorting error: {error.message}") from error


def _first(path: JsonPath, row: Json) -> list[Any]:
    found = path.find(row)
    return found[0][:1] if found else []


def _keys(values: list[Any], source: str) -> list[tuple[bool, Any]]:
    """Keys that put what is missing or null first."""
    present = [value for value in values if value is not None]
    if all(isinstance(value, int | float) for value in present):
        return [(value is not None, value or 0) for value in values]
    for value in present:
        if not isinstance(value, str):
            raise InputError(f"field {source} is an unsortable type: {go_type(value)}")
    quantities = [None if value is None else _quantity(value) for value in values]
    # All or nothing: comparing some pairs as quantities and others as text would be no order.
    if quantities.count(None) == values.count(None):
        return [(quantity is not None, quantity or Decimal(0)) for quantity in quantities]
    return [(value is not None, value or "") for value in values]


def _quantity(text: str) -> Decimal | None:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, suffix = match.groups()
    if not suffix:
        return Decimal(number)
    return Decimal(number) * (_SUFFIXES.get(suffix) or Decimal(f"1{suffix}"))
