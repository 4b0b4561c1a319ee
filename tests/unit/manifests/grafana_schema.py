"""Grafana's own schema, as the dashboard models of its foundation SDK (generated from it) hold it."""

from __future__ import annotations

import enum
import json
import types
import typing
from typing import Any

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

Json = dict[str, Any]


def complaints(dashboard: Json) -> list[str]:
    """What Grafana would not read as it is meant: keys that it does not know, values of other types."""
    plugins.register_default_plugins()
    loaded = Dashboard.from_json(json.loads(json.dumps(dashboard)))
    back = json.loads(JSONEncoder().encode(loaded))
    return [*_lost(dashboard, back, ""), *_mistyped(loaded, "")]


def _lost(written: Any, back: Any, path: str) -> list[str]:
    """Paths of what did not survive being read and written again."""
    if isinstance(written, dict) and isinstance(back, dict):
        unknown = [f"{path}.{key} is unknown" for key in written if key not in back]
        return unknown + [
            at for key in written if key in back for at in _lost(written[key], back[key], f"{path}.{key}")
        ]
    if isinstance(written, list) and isinstance(back, list) and len(written) == len(back):
        return [
            at
            for number, pair in enumerate(zip(written, back, strict=True))
            for at in _lost(*pair, f"{path}[{number}]")
        ]
    return [] if written == back else [f"{path}: {written!r} became {back!r}"]


def _mistyped(value: Any, path: str) -> list[str]:
    """Paths of attributes whose values are not what the models declare."""
    if isinstance(value, list):
        return [at for number, item in enumerate(value) for at in _mistyped(item, f"{path}[{number}]")]
    if not hasattr(value, "__dict__") or isinstance(value, enum.Enum):
        return []
    hints = typing.get_type_hints(type(value))
    found = []
    for name, item in vars(value).items():
        if name in hints and not _is(item, hints[name]):
            found.append(f"{path}.{name}: {item!r} is no {hints[name]}")
        found += _mistyped(item, f"{path}.{name}")
    return found


def _is(value: Any, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object:
        return True
    if origin is typing.Literal:
        return value in arguments
    if origin in (typing.Union, types.UnionType):
        return any(_is(value, argument) for argument in arguments)
    if origin is list:
        return isinstance(value, list) and all(_is(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is(item, arguments[1]) for item in value.values())
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return isinstance(value, hint) or value in [member.value for member in hint]
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, dict) and hasattr(hint, "from_json"):
        # Some lists are handed on as they are.
        return not _lost(value, json.loads(JSONEncoder().encode(hint.from_json(value))), "")
    return not isinstance(hint, type) or isinstance(value, hint)
