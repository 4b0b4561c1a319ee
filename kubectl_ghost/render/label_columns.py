"""The columns that `-L key1,key2` and `--show-labels` add to any table, at its end and in that order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubectl_ghost.domain.keys import Json
from kubectl_ghost.render.columns import NONE, Column


def label_columns(keys: Iterable[str] = (), *, show_labels: bool = False) -> list[Column]:
    """Build the extra columns.

    Args:
        keys: values of `-L`, each one key or several separated by commas; the heading is the part after the last `/`.
        show_labels: whether to end with a column of all labels.
    """
    single = [key.strip() for item in keys for key in item.split(",") if key.strip()]
    columns = [_one_label(key) for key in single]
    if show_labels:
        columns.append(Column("LABELS", all_labels))
    return columns


def all_labels(row: Json) -> str:
    """All labels of an object, `key=value`, sorted and separated by commas; `<none>` where it has none."""
    return ",".join(f"{key}={value}" for key, value in sorted(_labels(row).items())) or NONE


def _one_label(key: str) -> Column:
    def value(row: Json) -> str:
        return str(_labels(row).get(key, ""))

    # kubectl leaves the cell of an absent label blank, unlike every other empty cell.
    return Column(key.rsplit("/", 1)[-1], value, empty="")


def _labels(row: Json) -> dict[str, Any]:
    metadata = row.get("metadata") or {}
    return metadata.get("labels") or {}
