"""What can break in a GPU and who notices, read from the packaged catalogue.

Each figure's source stands in data/faults.json, under `fields` for the XIDs and beside the rest; what is marked CHOICE
there is this project's own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.keys import Json

XID = "xid"
"""The kind of fault that is told apart by NVIDIA's error number."""
_SAME_NAME = (
    "code",
    "mnemonic",
    "description",
    "immediate_action",
    "investigatory_action",
    "recovery",
    "err_msg",
    "xid154_linkage",
)
"""Fields of an Xid that stand in the catalogue under the same name, as they are."""


@dataclass(frozen=True, slots=True)
class EksReaction:
    """What the EKS node monitoring agent reports: its one condition with this reason, or an event with it."""

    reason: str
    condition: bool


@dataclass(frozen=True, slots=True)
class SentinelReaction:
    """What NVSentinel reports: its check's name, the error code, what it recommends, and whether it cordons."""

    check: str
    code: str
    action: str
    fatal: bool


@dataclass(frozen=True, slots=True)
class Xid:
    """One row of NVIDIA's catalogue and what each component makes of it.

    `dra_effect` is the effect of the DRA driver's own taint, None or NoSchedule; `applies_to` names NVIDIA's boards;
    None stands where the catalogue or the component says nothing. `dcgm` is (watch, result) of DCGM's health check.
    """

    code: int
    mnemonic: str
    description: str
    applies_to: tuple[str, ...]
    immediate_action: str | None
    investigatory_action: str | None
    category: str
    recovery: str | None
    err_msg: str
    xid154_linkage: str | None
    ignored_by_device_plugin: bool
    dra_effect: str
    eks: EksReaction
    nvsentinel: SentinelReaction | None
    dcgm: tuple[str, str] | None
    needs_nvlink: bool
    exit_code: int | None
    cured_by_reboot: bool
    companions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault: where it strikes (`scope`: gpu or node) and the reactions that are its own.

    `xids` says which XID comes with it, by architecture ("*": any); `dra_taint` is the key of a taint whose effect is
    `dra_effect`; `aks` is (type, reason) of a condition of AKS's node-problem-detector.
    """

    name: str
    scope: str
    description: str
    recovery: str
    cured_by_reboot: bool
    xids: tuple[tuple[str, int], ...]
    dra_taint: str | None
    dra_effect: str | None
    unhealthy: bool
    eks: EksReaction | None
    aks: tuple[str, str] | None
    nvsentinel: SentinelReaction | None

    @property
    def per_node(self) -> bool:
        """Whether it strikes a whole node."""
        return self.scope == "node"

    @property
    def silent(self) -> bool:
        """Whether nobody notices it but who measures the GPU."""
        told = self.xids or self.dra_taint or self.unhealthy or self.eks or self.aks or self.nvsentinel
        return self.scope == "gpu" and self.name != XID and not told

    def xid_on(self, architecture: str) -> int | None:
        """The XID that comes with it on a GPU of this architecture, if one does."""
        by_architecture = dict(self.xids)
        return by_architecture.get(architecture, by_architecture.get("*"))


@cache
def _data() -> Json:
    text = files("kubectl_ghost.data").joinpath("faults.json").read_text(encoding="utf-8")
    data: Json = json.loads(text)
    return data


@cache
def _rows() -> dict[int, Json]:
    return {row["code"]: row for row in _data()["xids"]}


def codes() -> list[int]:
    """Every XID that NVIDIA's catalogue describes, in ascending order."""
    return list(_rows())


@cache
def explain(code: int) -> Xid:
    """Everything that is known about an XID.

    Raises:
        InputError: if the catalogue does not describe it; of an unused code it says what the code once was.
    """
    row = _rows().get(code)
    if row is None:
        raise _unknown(code)
    key, data, sentinel, dcgm = str(code), _data(), row.get("nvsentinel"), row.get("dcgm")
    recovery = data["recoveries_by_code"].get(key) or data["recoveries"][row["recovery"]]
    return Xid(
        **{field: row[field] for field in _SAME_NAME},
        applies_to=tuple(row["applies_to"]),
        category=row["class"],
        ignored_by_device_plugin=row["device_plugin"] == "ignored",
        dra_effect=row["dra"],
        eks=EksReaction(**row["eks"]),
        nvsentinel=sentinel and SentinelReaction("SysLogsXIDError", key, sentinel["action"], sentinel["fatal"]),
        dcgm=dcgm and (dcgm["watch"], dcgm["result"]),
        needs_nvlink=code in data["nvlink_codes"]["codes"],
        exit_code=data["exit_codes"].get(key),
        cured_by_reboot=recovery["cured"],
        companions=tuple(data["companions"].get(key, ())),
    )


def _unknown(code: int) -> InputError:
    unused = _data()["unused"].get(str(code))
    known = codes()
    hint = f"The catalogue describes {len(known)} codes from {known[0]} to {known[-1]}, such as 79, 48 and 119."
    if unused is None:
        return InputError(f"NVIDIA's catalogue has no XID {code}", hint)
    was = "" if unused in ("Unused", "Reserved") else f' (once "{unused}")'
    return InputError(f"XID {code} is marked unused in NVIDIA's catalogue{was}", hint)


@cache
def kinds() -> dict[str, FaultKind]:
    """Every kind of fault by its name, in the catalogue's order."""
    return {row["name"]: _kind(row) for row in _data()["kinds"]}


def fault_kind(name: str) -> FaultKind:
    """The kind with this name.

    Raises:
        InputError: naming all kinds, if there is none.
    """
    kind = kinds().get(name)
    if kind is None:
        raise InputError(f'unknown kind of fault "{name}"', f"It is one of: {', '.join(kinds())}")
    return kind


def _kind(row: Json) -> FaultKind:
    dra, aks, eks, sentinel = row.get("dra", {}), row.get("aks"), row.get("eks"), row.get("nvsentinel")
    return FaultKind(
        name=row["name"],
        scope=row["scope"],
        description=row["description"],
        recovery=row["recovery"],
        cured_by_reboot=row["reboot"]["cured"],
        xids=tuple((key, code) for key, code in row.get("xid", {}).items() if key != "source"),
        dra_taint=dra.get("taint"),
        dra_effect=dra.get("effect"),
        unhealthy=row.get("unhealthy", False),
        eks=eks and EksReaction(**eks),
        aks=aks and (aks["type"], aks["reason"]),
        nvsentinel=sentinel
        and SentinelReaction(sentinel["check"], sentinel["code"], sentinel["action"], sentinel["fatal"]),
    )


def board(architecture: str, coherent: bool) -> str:
    """The column of NVIDIA's catalogue for an architecture: A100, H100, B100 or GB200.

    NVIDIA lists neither Turing nor Ada Lovelace: they take the A100's (CHOICE), as would an architecture unheard of.

    Args:
        architecture: as NVIDIA names it.
        coherent: whether the GPU shares its memory with a Grace CPU over NVLink-C2C.
    """
    data = _data()
    plain = data["architectures"].get(architecture, "A100")
    column: str = data["coherent_architectures"].get(architecture, plain) if coherent else plain
    return column


def without_nvlink() -> frozenset[str]:
    """The keys of the models whose boards have no NVLink."""
    return frozenset(_data()["without_nvlink"]["models"])


def aks_xid_condition() -> tuple[str, str]:
    """Type and reason of the condition that AKS's node-problem-detector sets for any XID."""
    row = _data()["aks_xid"]
    return row["type"], row["reason"]


def series_of_kind(name: str) -> Json:
    """What a kind of fault does to a GPU's metrics, as it stands in the catalogue; nothing of the kind xid."""
    row: Json = next((row for row in _data()["kinds"] if row["name"] == name), {})
    series: Json = row.get("series", {})
    return series


def series_of_code(code: int) -> Json:
    """What an XID does to a GPU's metrics beside its own series."""
    series: Json = _data()["series_by_code"].get(str(code), {})
    return series


def xid_message(code: int) -> str:
    """dcgm-exporter's `err_msg` for an XID."""
    if code == 0:
        return "No Error"
    return explain(code).err_msg if code in _rows() else "Unknown Error"
