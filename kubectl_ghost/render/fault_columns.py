"""The columns of `fault list`, and the text of `fault explain`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kubectl_ghost.domain.keys import Json
from kubectl_ghost.render.age import age
from kubectl_ghost.render.columns import Column, aligned, table


def fault_columns(now: datetime) -> list[Column]:
    """Columns of Fault views."""
    return [
        Column("NAME", lambda row: str(row["metadata"]["name"])),
        Column("FAULT", lambda row: str(row["status"]["fault"])),
        Column("AS", lambda row: ",".join(row["spec"]["as"])),
        Column("EFFECT", lambda row: str((row["status"]["taint"] or {}).get("effect", ""))),
        Column("RECOVERY", lambda row: str(row["status"]["recovery"])),
        Column("AGE", lambda row: age(row["metadata"]["creationTimestamp"], now)),
        Column("UNTIL", _until),
        Column("HOLDERS", lambda row: ",".join(row["status"]["holders"]), wide=True),
        Column("REBOOT", lambda row: _cured(row["status"]["curedByReboot"]), wide=True),
    ]


def _until(row: Json) -> str:
    until = str(row["spec"].get("until", ""))
    return f"{until} (over)" if row["status"]["over"] else until


EXPLANATION_COLUMNS = [
    Column("NAME", lambda row: str(row["metadata"]["name"])),
    Column("CLASS", lambda row: str(row.get("class", row.get("scope")))),
    Column("RECOVERY", lambda row: str(row["advice"]["recovery"] or "")),
    Column("REBOOT", lambda row: _cured(row["curedByReboot"])),
    Column("DESCRIPTION", lambda row: str(row["description"])),
]
"""Columns of all that can be explained: one line each."""


def explanation_lines(view: Json) -> Iterator[str]:
    """One explanation in full: its facts as `kubectl describe` sets them out, then who does what."""
    advice, health = view["advice"], view.get("dcgmHealth")
    facts = {
        "Name": view["metadata"]["name"],
        "Description": view["description"],
        "Mnemonic": view.get("mnemonic"),
        "Class": view.get("class"),
        "Scope": view.get("scope"),
        "Boards": ", ".join(view["appliesTo"]) or "none that is known" if "appliesTo" in view else None,
        "XID with it": ", ".join(_xid(*pair) for pair in view.get("xids", {}).items()),
        "Advice": advice.get("immediate"),
        "If it recurs": advice.get("investigatory"),
        "Recovery": advice["recovery"],
        "After a reboot": _cured(view["curedByReboot"]),
        "DCGM health": None if health is None else f"{health['result']} (watch {health['watch']})",
        "Comes with": ", ".join(f"XID {code}" for code in view.get("companions", ())),
        "By default": "; ".join(view["byDefault"]) or "nobody does anything",
    }
    shown = {key: str(value) for key, value in facts.items() if value}
    yield from aligned([[f"{key}:" for key in shown], list(shown.values())])
    yield "\n"
    yield from table(_REACTIONS, view["reactions"])


_REACTIONS = [
    Column("AS", lambda row: str(row["component"])),
    Column("DOES", lambda row: "; ".join(row["does"]), empty="nothing"),
]


def _xid(architecture: str, code: int) -> str:
    return f"{code}" if architecture == "*" else f"{code} ({architecture})"


def _cured(cured: bool) -> str:
    return "cured" if cured else "stays"
