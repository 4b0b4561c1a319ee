"""How Go writes a decoded JSON value: JSONPath and custom columns print values with `fmt`, not as JSON."""

from __future__ import annotations

from typing import Any

_TYPES: dict[type, str] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "<nil>",
}


def go_text(value: Any) -> str:
    """A value as `fmt.Sprint` writes it: `map[a:1 b:2]`, `[x y]`, `<nil>`, `1e+06`; strings as they are."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value, smallest=-4, largest=6)
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    return str(value)


def go_type(value: Any) -> str:
    """The Go type that a JSON value decodes to, as error messages name it."""
    return _TYPES.get(type(value), type(value).__name__)


def json_float(value: float) -> str:
    """A number as `encoding/json` writes it: `1` for 1.0, `1e+21`, `1.5e-7`."""
    text = _float(value, smallest=-6, largest=21)
    # encoding/json, unlike strconv, writes no leading zero in a negative exponent.
    return f"{text[:-2]}{text[-1]}" if text[-4:-1] == "e-0" else text


def _float(value: float, smallest: int, largest: int) -> str:
    """The shortest digits that read back as `value`, with an exponent below `smallest` and from `largest` on."""
    if value == 0:
        return "0"
    from decimal import Decimal

    number = Decimal(repr(value)).normalize()
    if not number.is_finite():
        return repr(value)
    exponent = number.adjusted()
    if smallest <= exponent < largest:
        return format(number, "f")
    sign, digits, _ = number.as_tuple()
    first, *rest = map(str, digits)
    mantissa = first + ("." + "".join(rest) if rest else "")
    return f"{'-' if sign else ''}{mantissa}e{exponent:+03d}"
