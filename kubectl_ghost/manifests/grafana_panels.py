"""Panels of a Grafana dashboard, in the JSON model of Grafana 11 and 12, and where they stand on its grid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubectl_ghost.domain.keys import Json

_COLUMNS = 24
"""How wide Grafana's grid is."""
_ROW_HEIGHT = 1
DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
_PERCENT_COLORS: Json = {"mode": "continuous-GrYlRd"}
_LEGEND: Json = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
_TOOLTIP: Json = {"mode": "multi", "sort": "desc"}


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL and what its rows are called in a legend (`{{pod}}` is a label); a table shows its newest values alone."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel that has no place yet; `body` is all of its JSON that is not told by the rest."""

    kind: str
    title: str
    description: str
    queries: tuple[Query, ...]
    body: Json
    width: int = 8
    height: int = 8


@dataclass(frozen=True, slots=True)
class Section:
    """Panels under one heading, from left to right and from top to bottom."""

    title: str
    panels: tuple[Panel, ...]


def stat(title: str, description: str, expression: str, unit: str = "short", *, alarming: bool = False) -> Panel:
    """One number, in Grafana's name of its unit; `alarming`: any above zero is bad."""
    steps = [{"color": "green", "value": None}] + ([{"color": "red", "value": 1}] if alarming else [])
    options: Json = {"reduceOptions": {"calcs": ["lastNotNull"], "values": False}, "graphMode": "area"}
    defaults: Json = {"unit": unit, "thresholds": {"mode": "absolute", "steps": steps}}
    return Panel("stat", title, description, (Query(expression),), _body(options, defaults), width=3, height=4)


def lines(title: str, description: str, unit: str, *queries: Query, stacked: bool = False) -> Panel:
    """Values over time; `stacked` where their sum means something."""
    custom: Json = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 20 if stacked else 0}
    if stacked:
        custom["stacking"] = {"mode": "normal", "group": "A"}
    body = _body({"legend": _LEGEND, "tooltip": _TOOLTIP}, {"unit": unit, "min": 0, "custom": custom})
    return Panel("timeseries", title, description, queries, body)


def distribution(title: str, description: str, expression: str) -> Panel:
    """How many series have which value in percent, over time, as colours."""
    options: Json = {
        "calculate": True,
        "calculation": {"yBuckets": {"mode": "size", "value": "10"}},
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
        "yAxis": {"unit": "percent", "min": 0, "max": 100},
        "cellGap": 1,
        "legend": {"show": True},
        "tooltip": {"mode": "single", "yHistogram": False},
    }
    body = _body(options, {}) | {"maxDataPoints": 100}
    return Panel("heatmap", title, description, (Query(expression),), body, width=8, height=9)


def map_of(title: str, description: str, query: Query) -> Panel:
    """A row a series and a column a time, coloured by the value in percent."""
    options: Json = {"legend": {**_LEGEND, "showLegend": False}, "tooltip": _TOOLTIP, "rowHeight": 0.9, "colWidth": 1}
    defaults: Json = {"unit": "percent", "min": 0, "max": 100, "color": _PERCENT_COLORS}
    body = _body({**options, "showValue": "never"}, defaults) | {"maxDataPoints": 60}
    return Panel("status-history", title, description, (query,), body, height=9)


def states(title: str, description: str, query: Query) -> Panel:
    """A row a series, its value written where it changes."""
    options: Json = {"legend": {**_LEGEND, "showLegend": False}, "tooltip": _TOOLTIP, "showValue": "auto"}
    body = _body(options | {"mergeValues": True, "rowHeight": 0.8}, {"color": {"mode": "palette-classic"}})
    return Panel("state-timeline", title, description, (query,), body, width=12)


def table(title: str, description: str, *queries: Query, hidden: Iterable[str] = ()) -> Panel:
    """The newest values with their labels; several queries of the same labels are joined into rows.

    A query's legend is the title of its column; `hidden` are columns that say nothing.
    """
    values = ["Value"] if len(queries) == 1 else [f"Value #{_reference(number)}" for number in range(len(queries))]
    titles = {value: query.legend for value, query in zip(values, queries, strict=True) if query.legend}
    organise = {"excludeByName": dict.fromkeys(("Time", *hidden), True), "renameByName": titles}
    body = _body({"showHeader": True, "cellHeight": "sm"}, {}) | {
        "transformations": [{"id": "merge", "options": {}}, {"id": "organize", "options": organise}]
    }
    return Panel("table", title, description, queries, body, width=12)


def bars(title: str, description: str, *queries: Query) -> Panel:
    """The newest values side by side."""
    options: Json = {
        "orientation": "horizontal",
        "displayMode": "basic",
        "reduceOptions": {"calcs": ["lastNotNull"], "values": False},
    }
    return Panel("bargauge", title, description, queries, _body(options, {"unit": "short", "min": 0}))


def _body(options: Json, defaults: Json) -> Json:
    return {"options": options, "fieldConfig": {"defaults": defaults, "overrides": []}}


def laid_out(sections: Iterable[Section]) -> list[Json]:
    """The panels of all sections with their places and numbers, each section under a row with its title."""
    found: list[Json] = []
    top = 0
    for section in sections:
        place = {"x": 0, "y": top, "w": _COLUMNS, "h": _ROW_HEIGHT}
        heading: Json = {"type": "row", "title": section.title, "collapsed": False, "gridPos": place, "panels": []}
        found.append(heading)
        top += _ROW_HEIGHT
        left = height = 0
        for panel in section.panels:
            if left + panel.width > _COLUMNS:
                left, top, height = 0, top + height, 0
            place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
            found.append(_drawn(panel) | {"gridPos": place})
            left, height = left + panel.width, max(height, panel.height)
        top += height
    return [{"id": number, **panel} for number, panel in enumerate(found, 1)]


def _drawn(panel: Panel) -> Json:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "targets": [_target(panel, number, query) for number, query in enumerate(panel.queries)],
        **panel.body,
    }


def _target(panel: Panel, number: int, query: Query) -> Json:
    newest = panel.kind in ("table", "stat", "bargauge")
    target: Json = {"refId": _reference(number), "datasource": DATASOURCE, "expr": query.expression}
    target |= {"instant": newest, "range": not newest, "format": "table" if panel.kind == "table" else "time_series"}
    return target | ({"legendFormat": query.legend} if query.legend and panel.kind != "table" else {})


def _reference(number: int) -> str:
    return "ABCDEFGH"[number]
