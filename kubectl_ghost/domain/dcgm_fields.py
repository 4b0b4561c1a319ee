"""The fields that dcgm-exporter can print, read from the packaged catalogue, and the ways of choosing among them.

The catalogue holds every line of dcgm-exporter's default-counters.csv, enabled or commented out; where each column
comes from stands in data/dcgm_fields.json.
"""

from __future__ import annotations

import csv
import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from operator import attrgetter

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.wording import counted, quoted

DEFAULT_GROUP = "default"
"""What dcgm-exporter prints unless it is told otherwise."""
ALL_GROUP = "all"
LABEL = "label"
"""The type of a field whose value becomes a label of every series rather than a series."""
_TYPES = ("gauge", "counter", LABEL)

_CELL = r'(?:"(?:[^"]|"")*"|[^",]*)'
_LINE = re.compile(rf"{_CELL}(?:,{_CELL})*")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufeff]")
_LAYOUT = 'Write it as dcgm-exporter reads it: NAME,gauge,help or, if the help has commas, NAME,gauge,"help, and more"'


class MigBehaviour(StrEnum):
    """What a field shows on a GPU in MIG mode."""

    PARENT = "parent"
    """The GPU's value, repeated on the series of every instance."""
    INSTANCE = "instance"
    """A value of each instance's own."""
    ABSENT = "absent"
    """Nothing at all."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field as it is printed: `name`, `prom_type` (gauge, counter or label) and `help` are what a scrape shows.

    `field_id` tells which of DCGM's fields it is, under whichever of its names; those of dcgm-exporter itself count
    from 9001. `value_type` (int64, double or string) decides how a number is written. `default`: printed unless told
    otherwise.
    """

    name: str
    field_id: int
    prom_type: str
    help: str
    default: bool
    value_type: str
    mig: MigBehaviour
    group: str


@cache
def _rows() -> list[Json]:
    text = files("kubectl_ghost.data").joinpath("dcgm_fields.json").read_text(encoding="utf-8")
    rows: list[Json] = json.loads(text)["fields"]
    return rows


@cache
def all_fields() -> tuple[Field, ...]:
    """Every field under its classic name, in the order of dcgm-exporter's file."""
    names = Field.__dataclass_fields__
    return tuple(Field(**{name: row[name] for name in names} | {"mig": MigBehaviour(row["mig"])}) for row in _rows())


@cache
def _by_id() -> dict[int, Field]:
    return {field.field_id: field for field in all_fields()}


def classic(field: Field) -> Field:
    """The same field as dcgm-exporter's own file has it: whatever its name and type are in this scrape."""
    return _by_id()[field.field_id]


@cache
def _by_name() -> dict[str, Field]:
    """Every field by each of its names: the classic one and the one that DCGM 4.6 gave it."""
    found = {field.name: field for field in all_fields()}
    renamed = {row["alias"]: replace(found[row["name"]], name=row["alias"]) for row in _rows() if "alias" in row}
    return found | renamed


@cache
def _groups() -> dict[str, tuple[Field, ...]]:
    groups: dict[str, tuple[Field, ...]] = {
        DEFAULT_GROUP: tuple(field for field in all_fields() if field.default),
        ALL_GROUP: all_fields(),
    }
    for field in all_fields():
        groups[field.group] = (*groups.get(field.group, ()), field)
    return groups


@cache
def default_fields() -> tuple[Field, ...]:
    """What dcgm-exporter prints by default: 25 series and the label with the driver's version, by ascending id."""
    return _sorted(_groups()[DEFAULT_GROUP])


def group_names() -> list[str]:
    """The groups that select_fields knows: the two that cut across, then those of the catalogue in its order."""
    return list(_groups())


def select_fields(text: str) -> tuple[Field, ...]:
    """The fields that a comma list of groups and of names stands for, by ascending id, each once.

    A field named by itself is printed under the name given, though a group may hold it too; of two names of one field
    the first counts.

    Raises:
        InputError: naming what comes near, for a word that is neither; or if nothing is named.
    """
    grouped: dict[int, Field] = {}
    named: dict[int, Field] = {}
    for word in filter(None, map(str.strip, text.split(","))):
        members = _groups().get(word.lower())
        if members is not None:
            grouped.update({field.field_id: field for field in members})
        elif (field := _by_name().get(word.upper())) is not None:
            named.setdefault(field.field_id, field)
        else:
            near = _near(word) or f"The groups are: {', '.join(_groups())}"
            raise InputError(f"unknown field or group of fields {quoted(word)}", near)
    if not grouped and not named:
        raise InputError("no field is named", f"Name fields or groups of them: {', '.join(_groups())}")
    return _sorted((grouped | named).values())


def parse_counters(text: str) -> tuple[Field, ...]:
    """The fields of a file in dcgm-exporter's format, by ascending id, with the type and the help of the file.

    Such a file has lines `NAME, type, help`; those that start with # and blank ones say nothing. As in dcgm-exporter,
    blanks around the columns do not count, and a help with commas stands in quotation marks.

    Raises:
        InputError: with the number of the first line that dcgm-exporter would refuse, or that asks for what is not
            simulated; or if no line names a field.
    """
    lines: dict[int, int] = {}
    fields: list[Field] = []
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        field = _counter(number, line)
        earlier = lines.setdefault(field.field_id, number)
        if earlier != number:
            # dcgm-exporter would print the same series twice, which Prometheus rejects.
            raise InputError(f"line {number}: {field.name} is on line {earlier} already", "Keep one of the two lines.")
        fields.append(field)
    if not fields:
        raise InputError("no line names a field", _LAYOUT)
    return _sorted(fields)


def _counter(number: int, line: str) -> Field:
    """The field of one line."""
    name, kind, text = _columns(number, line)
    field = _by_name().get(name)
    if field is None:
        near = _near(name)
        hint = "Comment the line out" + (f", or take another field. {near}" if near else ".")
        raise InputError(f'line {number}: the field "{name}" is not simulated', hint)
    if kind not in _TYPES:
        hint = f"Make it one of: {', '.join(_TYPES)}"
        raise InputError(f'line {number}: {name} cannot be of the type "{kind}"', hint)
    if (kind == LABEL) != (field.prom_type == LABEL):
        hint = f"Make it a {field.prom_type}, as dcgm-exporter's own file does."
        raise InputError(f"line {number}: {name} cannot be a {kind}", hint)
    return replace(field, prom_type=kind, help=text)


def _columns(number: int, line: str) -> list[str]:
    """The three columns of a line, as Go's CSV reader splits them, which is stricter about quotation marks."""
    if _UNPRINTABLE.search(line):
        raise InputError(f"line {number}: a character that does not print is out of place", "Save it as plain UTF-8.")
    if not _LINE.fullmatch(line):
        raise InputError(f"line {number}: a quotation mark is out of place", _LAYOUT)
    columns = [cell.strip(" ") for cell in next(csv.reader([line]))]
    if len(columns) != 3:
        raise InputError(f"line {number}: it has {counted(len(columns), 'column')} instead of 3", _LAYOUT)
    return columns


def _near(word: str) -> str:
    """A hint with the groups and fields whose names come near, empty if none does."""
    groups = difflib.get_close_matches(word.lower(), _groups(), n=3)
    names = difflib.get_close_matches(word.upper(), _by_name(), n=3, cutoff=0.7)
    return f"Did you mean one of: {', '.join([*groups, *names])}" if groups or names else ""


def _sorted(fields: Iterable[Field]) -> tuple[Field, ...]:
    return tuple(sorted(fields, key=attrgetter("field_id")))
