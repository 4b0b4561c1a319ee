"""What the components that notice faults do about one: a pure function of the fault and the GPU model.

The components differ in what they see: the device plugin makes the GPU unallocatable, the DRA driver taints it, the
EKS agent, AKS's node-problem-detector and NVSentinel speak through the Node. Merging several faults of one node is for
whoever derives the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from kubectl_ghost.domain.catalogue import GpuModel
from kubectl_ghost.domain.fault_catalogue import (
    EksReaction,
    FaultKind,
    SentinelReaction,
    Xid,
    aks_xid_condition,
    explain,
    fault_kind,
)
from kubectl_ghost.domain.faults import Effect, Fault, Reactor, accompanying_xid

XID_TAINT = "gpu.nvidia.com/xid"
EKS_CONDITION = "AcceleratedHardwareReady"
SENTINEL_LABELS = "k8saas.nvidia.com/"
"""Prefix of the labels by which NVSentinel says that it cordoned a node."""
_SENTINEL_TIME = "%Y-%m-%dT%H-%M-%SZ"
"""A colon is not allowed in a label's value."""


@dataclass(frozen=True, slots=True)
class DeviceTaint:
    """A taint on a device in a ResourceSlice."""

    key: str
    value: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the Node."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event about the Node, from `component`.

    `type` is Normal or Warning, but for NVSentinel's, which puts its check's name there: core/v1 takes any word,
    events.k8s.io/v1 does not (seen on 1.36.1).
    """

    type: str
    reason: str
    message: str
    component: str


@dataclass(frozen=True, slots=True)
class Reaction:
    """Everything that happens because of one fault.

    `all_devices`: the component cannot tell which device it is, so that every device of the node is struck.
    `unhealthy`: the device plugin takes the GPU out of allocatable. `exit_code`: the pod that holds the GPU fails with
    it. `evicts`: pods that the taint does not evict by itself are to be evicted by the command.
    """

    taint: DeviceTaint | None
    all_devices: bool
    unhealthy: bool
    conditions: tuple[Condition, ...]
    notices: tuple[Notice, ...]
    labels: tuple[tuple[str, str], ...]
    cordon: bool
    exit_code: int | None
    evicts: bool


def reaction(fault: Fault, model: GpuModel, device: str) -> Reaction:
    """What happens because of this fault.

    Args:
        fault: a fault of the catalogue.
        model: the GPU model of the node.
        device: the GPU's name, `gpu-2`; empty for a fault of the whole node.
    """
    kind = fault_kind(fault.kind)
    code = accompanying_xid(fault, model)
    xid = None if code is None else explain(code)
    subject = f"{device}: {_what(fault, kind, xid)}" if device else _what(fault, kind, xid)
    taint = _taint(fault, kind, xid) if fault.reacts(Reactor.DRA) else None
    eks = _eks(kind, xid) if fault.reacts(Reactor.EKS) else ()
    sentinel = _sentinel(kind, xid) if fault.reacts(Reactor.NVSENTINEL) else ()
    grave = [said for said in sentinel if said.fatal]
    return Reaction(
        taint=taint,
        all_devices=_all_devices(fault, kind),
        unhealthy=fault.reacts(Reactor.DEVICE_PLUGIN) and _unhealthy(kind, xid),
        conditions=(
            *(Condition(EKS_CONDITION, "False", said.reason, subject) for said in eks if said.condition),
            *(_aks(kind, xid, subject) if fault.reacts(Reactor.NPD) else ()),
            *(Condition(said.check, "True", _sentinel_reason(said), _advice(said, subject)) for said in grave),
        ),
        notices=(
            *(() if kind.silent else (Notice("Warning", _reason(fault), subject, "kubectl-ghost"),)),
            *(
                Notice("Warning", said.reason, subject, "eks-node-monitoring-agent")
                for said in eks
                if not said.condition
            ),
            *(
                Notice(said.check, _sentinel_reason(said), _advice(said, subject), "nvsentinel")
                for said in sentinel
                if not said.fatal
            ),
        ),
        labels=_cordon_labels(fault, grave[0]) if grave else (),
        cordon=bool(grave),
        exit_code=None if xid is None else xid.exit_code,
        evicts=taint is not None and taint.effect is Effect.NO_EXECUTE,
    )


def _what(fault: Fault, kind: FaultKind, xid: Xid | None) -> str:
    if fault.code is None:
        return f"{kind.description} (XID {xid.code})" if xid is not None else kind.description
    return f"{fault.name}, {explain(fault.code).description}"


def _reason(fault: Fault) -> str:
    """An Event's reason: `XID79`, `GpuLost`."""
    if fault.code is not None:
        return f"XID{fault.code}"
    return "".join(word.capitalize() for word in fault.kind.split("-"))


def _taint(fault: Fault, kind: FaultKind, xid: Xid | None) -> DeviceTaint | None:
    """The DRA driver's taint; without `--as` its NoSchedule becomes NoExecute, so that a fault moves pods."""
    if kind.dra_taint is not None and kind.dra_effect is not None:
        key, value, effect = kind.dra_taint, "", Effect(kind.dra_effect)
    elif xid is not None:
        key, value, effect = XID_TAINT, str(xid.code), Effect(xid.dra_effect)
    else:
        return None
    if not fault.reactors and effect is Effect.NO_SCHEDULE:
        effect = Effect.NO_EXECUTE
    return DeviceTaint(key, value, fault.effect or effect)


def _all_devices(fault: Fault, kind: FaultKind) -> bool:
    """Both NVIDIA components strike every device when one is lost; by default only the lost one, which is ours."""
    if kind.dra_taint is None:
        return False
    named = Reactor.DRA in fault.reactors or Reactor.DEVICE_PLUGIN in fault.reactors
    return kind.per_node or named


def _unhealthy(kind: FaultKind, xid: Xid | None) -> bool:
    return kind.unhealthy or (xid is not None and not xid.ignored_by_device_plugin)


def _eks(kind: FaultKind, xid: Xid | None) -> tuple[EksReaction, ...]:
    """The agent has one condition, which keeps one reason: the XID's where it has one, else the kind's own."""
    said = () if xid is None else (xid.eks,)
    if kind.eks is None or any(reacted.condition for reacted in said):
        return said
    return (*said, kind.eks)


def _aks(kind: FaultKind, xid: Xid | None, subject: str) -> tuple[Condition, ...]:
    found = ([kind.aks] if kind.aks is not None else []) + ([aks_xid_condition()] if xid is not None else [])
    return tuple(Condition(type_, "True", reason, subject) for type_, reason in found)


def _sentinel(kind: FaultKind, xid: Xid | None) -> tuple[SentinelReaction, ...]:
    """What its log monitor says of the XID and its GPU monitor of the kind."""
    found = (xid.nvsentinel if xid is not None else None, kind.nvsentinel)
    return tuple(said for said in found if said is not None)


def healthy_condition(condition_type: str) -> Condition:
    """What a condition that a component sets says when nothing is the matter any more.

    The EKS agent's words are its own (aws/eks-node-monitoring-agent, cmd); NVSentinel's reason follows its other one,
    and AKS's is this project's choice.
    """
    if condition_type == EKS_CONDITION:
        message = "Monitoring for the Nvidia AcceleratedHardware system is active"
        return Condition(condition_type, "True", "NvidiaAcceleratedHardwareIsReady", message)
    return Condition(condition_type, "False", f"{condition_type}IsHealthy", "no fault is declared any more")


def _sentinel_reason(said: SentinelReaction) -> str:
    return f"{said.check}IsNotHealthy"


def _advice(said: SentinelReaction, subject: str) -> str:
    return f"[{said.code}] {subject} - RecommendedAction: {said.action}"


def _cordon_labels(fault: Fault, said: SentinelReaction) -> tuple[tuple[str, str], ...]:
    """NVSentinel's labels; the reason is the name of the chart's rule set that matched, made fit for a label."""
    monitor = "Syslog" if said.check.startswith("SysLogs") else "GPU"
    labels = [("cordon-by", "NVSentinel"), ("cordon-reason", f"{monitor}-fatal-error-ruleset")]
    if fault.since:
        since = datetime.fromisoformat(fault.since).astimezone(UTC)
        labels.append(("cordon-timestamp", since.strftime(_SENTINEL_TIME)))
    return tuple((SENTINEL_LABELS + name, value) for name, value in labels)
