"""Faults as objects to look at: those that are declared, and what is known of each code and kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from kubectl_ghost.domain.catalogue import GpuModel, model
from kubectl_ghost.domain.consequences import node_reactions
from kubectl_ghost.domain.expiry import is_over
from kubectl_ghost.domain.fault_catalogue import XID, FaultKind, Xid, codes, explain, fault_kind, kinds
from kubectl_ghost.domain.faults import DEFAULT_REACTORS, Fault, Reactor, accompanying_xid, board_of, cured_by_reboot
from kubectl_ghost.domain.holders import Holder
from kubectl_ghost.domain.identity import gpu_name, parent_gpu
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.reactions import DeviceTaint, Reaction, reaction
from kubectl_ghost.operations.inventory import VIEW_VERSION, Inventory

_EXAMPLES = ("h100-sxm5-80gb", "a100-sxm4-80gb", "b200", "gb200")
"""A model of each of the boards that NVIDIA's catalogue tells apart, the one that most people mean first."""
_Held = Mapping[tuple[str, str], list[Holder]]


def fault_views(inventory: Inventory, moment: str) -> list[Json]:
    """Every declared fault, by node and GPU; one that is over stands until the next command takes it away.

    Args:
        moment: the time now, RFC 3339.
    """
    held: dict[tuple[str, str], list[Holder]] = defaultdict(list)
    for (node_name, device), found in inventory.holders.items():
        held[(node_name, parent_gpu(device))] += found
    views = []
    for node in inventory.in_order:
        for index, fault, answer in node_reactions(inventory.hardware[node["metadata"]["name"]]):
            view = _view(node, index, fault, answer, held)
            view["status"]["over"] = is_over(fault, moment)
            views.append(view)
    return views


def _view(node: Json, index: int | None, fault: Fault, answer: Reaction, held: _Held) -> Json:
    name = node["metadata"]["name"]
    device = None if index is None else gpu_name(index)
    spec = {
        "node": name,
        "device": device,
        "kind": fault.kind,
        "code": fault.code,
        "as": [] if _noticed_by_kubernetes(fault) else [found.value for found in fault.reactors or DEFAULT_REACTORS],
        "effect": fault.effect and fault.effect.value,
        "until": fault.until or None,
    }
    return {
        "apiVersion": VIEW_VERSION,
        "kind": "Fault",
        "metadata": {
            "name": name if device is None else f"{name}/{device}",
            "creationTimestamp": fault.since or None,
            "labels": node["metadata"].get("labels") or {},
        },
        "spec": {key: value for key, value in spec.items() if value is not None},
        "status": {
            "fault": fault.name,
            "taint": None if answer.taint is None else _taint(answer.taint),
            "unhealthy": answer.unhealthy,
            "recovery": _recovery(fault),
            "curedByReboot": cured_by_reboot(fault),
            "holders": sorted({str(holder) for holder in held.get((name, device or ""), ())}),
        },
    }


def _noticed_by_kubernetes(fault: Fault) -> bool:
    """Whether it is a fault that the node controller notices, rather than somebody who looks at GPUs."""
    kind = fault_kind(fault.kind)
    return kind.per_node and kind.dra_taint is None


def _taint(taint: DeviceTaint) -> Json:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect.value}


def _recovery(fault: Fault) -> str:
    if fault.code is None:
        return fault_kind(fault.kind).recovery
    return explain(fault.code).recovery or ""


def explanations() -> list[Json]:
    """Everything that the catalogue knows: the kinds of fault, then the codes."""
    return [*(explanation(name) for name in kinds() if name != XID), *(explanation(code) for code in codes())]


def explanation(what: str | int) -> Json:
    """What is known of an XID, or of a kind of fault.

    Raises:
        InputError: if the catalogue has no such code or kind.
    """
    if isinstance(what, int):
        return _explained(Fault(XID, what), **_xid_facts(explain(what)))
    return _explained(Fault(fault_kind(what).name), **_kind_facts(fault_kind(what)))


def _explained(fault: Fault, **facts: object) -> Json:
    board = _example(fault)
    return {
        "apiVersion": VIEW_VERSION,
        "kind": "FaultExplanation",
        "metadata": {"name": fault.name},
        **facts,
        "curedByReboot": cured_by_reboot(fault),
        "reactions": [{"component": reactor.value, "does": list(_does(reactor, fault, board))} for reactor in Reactor],
        "byDefault": list(_by_default(fault, reaction(fault, board, "gpu-0"))),
    }


def _example(fault: Fault) -> GpuModel:
    boards = [model(key) for key in _EXAMPLES]
    if fault.code is None:
        return boards[0]
    applies_to = explain(fault.code).applies_to
    return next((board for board in boards if board_of(board) in applies_to), boards[0])


def _xid_facts(xid: Xid) -> Json:
    return {
        "description": xid.description,
        "mnemonic": xid.mnemonic,
        "class": xid.category,
        "appliesTo": list(xid.applies_to),
        "needsNVLink": xid.needs_nvlink,
        "advice": {
            "immediate": xid.immediate_action,
            "investigatory": xid.investigatory_action,
            "recovery": xid.recovery,
        },
        "dcgmHealth": None if xid.dcgm is None else {"watch": xid.dcgm[0], "result": xid.dcgm[1]},
        "companions": list(xid.companions),
        "podExitCode": xid.exit_code,
    }


def _kind_facts(kind: FaultKind) -> Json:
    return {
        "description": kind.description,
        "scope": kind.scope,
        "advice": {"recovery": kind.recovery},
        "xids": dict(kind.xids),
    }


def _does(reactor: Reactor, fault: Fault, board: GpuModel) -> Iterator[str]:
    """What one component makes of a fault, in the words of what can be seen of it."""
    if _noticed_by_kubernetes(fault):
        return
    answer = reaction(Fault(fault.kind, fault.code, (reactor,)), board, "gpu-0")
    if answer.taint is not None:
        where = " on every GPU of the node" if answer.all_devices else ""
        yield f"device taint {_taint_text(answer.taint)}{where}"
    if answer.unhealthy:
        yield f"{'every GPU of the node' if answer.all_devices else 'GPU'} unhealthy: allocatable is lowered"
    for condition in answer.conditions:
        yield f"condition {condition.type}={condition.status} ({condition.reason})"
    for notice in answer.notices:
        if notice.component != "kubectl-ghost":
            yield f"event {notice.reason}"
    if answer.cordon:
        yield "cordons the node"
    if reactor is Reactor.NVSENTINEL:
        yield from _recommended(fault, board)


def _recommended(fault: Fault, board: GpuModel) -> Iterator[str]:
    code = accompanying_xid(fault, board)
    said = (explain(code).nvsentinel if code is not None else None, fault_kind(fault.kind).nvsentinel)
    actions = dict.fromkeys(found.action for found in said if found is not None)
    if actions:
        yield f"recommends {', '.join(actions)}"


def _by_default(fault: Fault, answer: Reaction) -> Iterator[str]:
    if _noticed_by_kubernetes(fault):
        yield "the node is not Ready: the node controller taints it, and its pods are evicted in time"
    if answer.exit_code is not None:
        yield f"the pod that holds the GPU fails with exit code {answer.exit_code}"
    if answer.taint is not None:
        yield f"device taint {_taint_text(answer.taint)}"
    if answer.evicts:
        yield "pods are evicted"
    if answer.unhealthy:
        yield "allocatable is lowered"


def _taint_text(taint: DeviceTaint) -> str:
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"
