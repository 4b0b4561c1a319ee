"""A declared fault: what is broken, who reacts, since when; whether it can be, and whether a reboot cures it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kubectl_ghost.domain.catalogue import GpuModel
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.fault_catalogue import XID, FaultKind, board, explain, fault_kind, without_nvlink
from kubectl_ghost.domain.keys import Json


class Reactor(StrEnum):
    """A component that notices faults: the values of `--as`."""

    DEVICE_PLUGIN = "device-plugin"
    DRA = "dra"
    EKS = "eks-node-monitoring"
    NPD = "node-problem-detector"
    NVSENTINEL = "nvsentinel"


class Effect(StrEnum):
    """The effect of a device taint, weakest first."""

    NONE = "None"
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


DEFAULT_REACTORS = (Reactor.DEVICE_PLUGIN, Reactor.DRA)
DEFAULT_CODE = 79
"""The XID of a fault for which the user named none: fallen off the bus."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a GPU or a node, as declared.

    `code` is there for the kind xid alone. No `reactors`: the default pair reacts, more strongly than in the field.
    `effect` overrides that of the device taint. `since` and `until` are RFC 3339; no `until`: until it is cleared.
    """

    kind: str
    code: int | None = None
    reactors: tuple[Reactor, ...] = ()
    effect: Effect | None = None
    since: str = ""
    until: str = ""

    def __post_init__(self) -> None:
        """Put the reactors into one order, each once: the same declaration is the same value."""
        object.__setattr__(self, "reactors", tuple(reactor for reactor in Reactor if reactor in self.reactors))

    @property
    def identity(self) -> tuple[str, int]:
        """What tells faults of one device apart: the kind, and the code of an XID (0 otherwise)."""
        return self.kind, self.code or 0

    @property
    def name(self) -> str:
        """What a user reads: `XID 79`, `gpu-lost`."""
        return f"XID {self.code}" if self.kind == XID else self.kind

    def reacts(self, reactor: Reactor) -> bool:
        """Whether this component reacts to it."""
        return reactor in (self.reactors or DEFAULT_REACTORS)

    def __lt__(self, other: Fault) -> bool:
        """Ordered by identity, then by the rest."""
        return self._order() < other._order()

    def _order(self) -> tuple[str, int, tuple[str, ...], str, str, str]:
        return *self.identity, self.reactors, self.effect or "", self.since, self.until


def fault_value(fault: Fault) -> Json:
    """The fault as JSON; what is as by default is left out."""
    value: Json = {
        "kind": fault.kind,
        "code": fault.code,
        "as": [reactor.value for reactor in fault.reactors],
        "effect": fault.effect and fault.effect.value,
        "since": fault.since,
        "until": fault.until,
    }
    return {key: item for key, item in value.items() if item not in (None, "", [])}


def read_fault(value: Json) -> Fault:
    """The fault that `fault_value` wrote.

    Raises:
        KeyError, TypeError, ValueError: if it is damaged, or not of this version's catalogue.
    """
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no fault")
    if strange := set(value) - {"kind", "code", "as", "effect", "since", "until"}:
        raise ValueError(f"a fault has no {', '.join(sorted(strange))}")
    reactors, effect, code = value.get("as", []), value.get("effect"), value.get("code")
    if not isinstance(reactors, list):
        raise TypeError(f"{reactors!r} is no list of components")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool)):
        raise TypeError(f"{code!r} is no code")
    fault = Fault(
        kind=_text(value["kind"]),
        code=code,
        reactors=tuple(map(Reactor, reactors)),
        effect=None if effect is None else Effect(effect),
        since=_time(value.get("since", "")),
        until=_time(value.get("until", "")),
    )
    try:
        _known(fault)
    except InputError as error:
        raise ValueError(error.message) from error
    return fault


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _time(value: object) -> str:
    text = _text(value)
    if text and datetime.fromisoformat(text).tzinfo is None:
        raise ValueError(f"{text} is no RFC 3339 time")
    return text


def _known(fault: Fault) -> FaultKind:
    """The fault's kind, after seeing that kind and code belong together and are in the catalogue."""
    kind = fault_kind(fault.kind)
    if kind.name != XID:
        if fault.code is not None:
            raise InputError(f"{kind.name} takes no code", "Only the kind xid does.")
    elif fault.code is None:
        raise InputError("an xid fault needs a code", f"Such as --code {DEFAULT_CODE}.")
    else:
        explain(fault.code)
    return kind


def check_options(reactors: tuple[Reactor, ...], effect: Effect | None, kind: str = XID) -> None:
    """Refuse `--as` and `--effect` where they would do nothing.

    Raises:
        InputError: if `--effect` is given though no device taint is written, or `--as` for a fault that Kubernetes
            itself notices.
    """
    row = fault_kind(kind)
    if reactors and row.per_node and row.dra_taint is None:
        raise InputError(f"--as does not go with {kind}: Kubernetes itself notices it")
    if effect is None:
        return
    if reactors and Reactor.DRA not in reactors:
        raise InputError(
            f"--effect {effect} needs a device taint, which --as {','.join(reactors)} does not write",
            f"Add --as {Reactor.DRA}, or leave --effect out.",
        )
    if kind != XID and row.dra_taint is None and not row.xids:
        raise InputError(
            f"--effect {effect} needs a device taint, and {kind} has none", "NVIDIA's DRA driver does not taint for it."
        )


def applies(fault: Fault, model: GpuModel, force: bool = False) -> None:
    """Refuse a fault that cannot occur on this model.

    Args:
        fault: what is to break.
        model: the GPU model of the node.
        force: allow what the model cannot have; a code that is not in the catalogue stays refused.

    Raises:
        InputError: saying why it cannot occur.
    """
    kind = _known(fault)
    if force:
        return
    override = "--force declares it nevertheless."
    linked = kind.name == "nvlink-down"
    if fault.code is not None:
        xid, column = explain(fault.code), board_of(model)
        linked = xid.needs_nvlink
        if not xid.applies_to:
            raise InputError(f"XID {xid.code} ({xid.description}) occurs on no GPU that this tool knows", override)
        if column not in xid.applies_to:
            raise InputError(
                f"XID {xid.code} ({xid.description}) does not occur on {model.nvml_name} ({model.architecture})",
                f"NVIDIA lists it for {', '.join(xid.applies_to)}. {override}",
            )
    if linked and model.key in without_nvlink():
        raise InputError(f"{fault.name} does not occur on {model.nvml_name}: it has no NVLink", override)


def board_of(model: GpuModel) -> str:
    """The column of NVIDIA's catalogue for a model; address translation by the CPU (ATS) is what NVLink-C2C brings."""
    return board(model.architecture, coherent=model.addressing_mode == "ATS")


def accompanying_xid(fault: Fault, model: GpuModel) -> int | None:
    """The XID that the driver logs with a fault on this model, if any: an xid fault's own code."""
    return fault.code if fault.kind == XID else fault_kind(fault.kind).xid_on(model.architecture)


def cured_by_reboot(fault: Fault) -> bool:
    """Whether the fault is gone after the node has been rebooted; why, stands beside each answer in the catalogue.

    An XID follows NVIDIA's recovery: all but `hands on` and `support` are cured, and of the codes without advice all
    but worn circuitry (164, 165) and memory that stays smaller (168). Of the other kinds those remain that need a new
    board (row-remap-failure, though its XID 64 alone is cured by a reset) or have their cause around the node
    (thermal, power, pcie) or unknown (slow).
    """
    if fault.kind == XID and fault.code is not None:
        return explain(fault.code).cured_by_reboot
    return fault_kind(fault.kind).cured_by_reboot
