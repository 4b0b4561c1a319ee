"""What can break where, how a fault is declared, and what a reboot cures."""

import json

import pytest

from kubectl_ghost.domain.catalogue import model, model_keys
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.fault_catalogue import codes, explain, fault_kind, kinds
from kubectl_ghost.domain.faults import (
    Effect,
    Fault,
    Reactor,
    accompanying_xid,
    applies,
    board_of,
    check_options,
    cured_by_reboot,
    fault_value,
    read_fault,
)

EVERYWHERE = ("A100", "H100", "B100", "GB200")
ONLY_ON = {
    **dict.fromkeys([61, 152, 153], ()),
    54: ("A100", "H100", "B100"),
    **dict.fromkeys([74, 80], ("A100", "H100")),
    93: ("A100",),
    136: ("H100",),
    **dict.fromkeys([*range(96, 106), 110, 141, 143, 151, 156, 157, 167, 169], ("H100", "B100", "GB200")),
    **dict.fromkeys([*range(126, 136), 139, *range(144, 151), 155, *range(159, 167), 170], ("B100", "GB200")),
    **dict.fromkeys([121, 142], ("GB200",)),
}
"""Where an XID is not on all four of NVIDIA's boards."""
BOARDS = {"A100": "a100-sxm4-80gb", "H100": "h100-sxm5-80gb", "B100": "b200", "GB200": "gb200"}
KINDS = [
    "xid",
    "gpu-lost",
    "nvlink-down",
    "ecc-correctable",
    "ecc-uncorrectable",
    "row-remap-pending",
    "row-remap-failure",
    "thermal",
    "power",
    "slow",
    "pcie",
    "driver-crash",
    "node-down",
    "node-unreachable",
]


def test_the_catalogue_describes_112_codes_and_every_kind():
    assert len(codes()) == 112
    assert (codes()[0], codes()[-1]) == (8, 172)
    assert list(kinds()) == KINDS
    assert [name for name, kind in kinds().items() if kind.per_node] == [
        "driver-crash",
        "node-down",
        "node-unreachable",
    ]


@pytest.mark.parametrize("code", codes())
def test_an_xid_is_refused_where_it_cannot_occur(code):
    allowed = ONLY_ON.get(code, EVERYWHERE)
    for board, key in BOARDS.items():
        applies(Fault("xid", code), model(key), force=True)
        if board in allowed:
            applies(Fault("xid", code), model(key))
            continue
        with pytest.raises(InputError, match=f"^XID {code} ") as caught:
            applies(Fault("xid", code), model(key))
        assert "--force" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("key", "board"),
    [
        ("t4", "A100"),
        ("l40s", "A100"),
        ("a10", "A100"),
        ("a100-sxm4-40gb", "A100"),
        ("h200-sxm5", "H100"),
        ("gh200-96gb", "H100"),
        ("b300", "B100"),
        ("rtx-pro-6000-blackwell-server", "B100"),
        ("gb200", "GB200"),
        ("gb300", "GB200"),
    ],
)
def test_each_model_has_its_column_in_nvidias_list(key, board):
    assert board_of(model(key)) == board


NO_NVLINK = {"t4", "l4", "l40s", "a10", "a10g", "rtx-pro-6000-blackwell-server"}


@pytest.mark.parametrize("key", model_keys())
def test_nvlink_breaks_only_where_there_is_one(key):
    chosen = model(key)
    code = accompanying_xid(Fault("nvlink-down"), chosen)
    assert code == (149 if chosen.architecture == "Blackwell" else 74)
    for fault in (Fault("nvlink-down"), Fault("xid", code)):
        if key in NO_NVLINK:
            with pytest.raises(InputError, match="has no NVLink"):
                applies(fault, chosen)
            applies(fault, chosen, force=True)
        else:
            applies(fault, chosen)


def test_an_unused_code_is_refused_with_what_it_once_was_even_by_force():
    with pytest.raises(InputError) as caught:
        applies(Fault("xid", 81), model("t4"), force=True)
    assert caught.value.message == 'XID 81 is marked unused in NVIDIA\'s catalogue (once "VGA Subsystem Error")'
    with pytest.raises(InputError, match=r"XID 5 is marked unused in NVIDIA's catalogue$"):
        explain(5)


@pytest.mark.parametrize("code", [0, -1, 173, 999])
def test_a_code_that_nobody_knows_is_refused(code):
    with pytest.raises(InputError, match=f"no XID {code}$"):
        explain(code)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("voodoo"), 'unknown kind of fault "voodoo"'),
        (Fault("xid"), "needs a code"),
        (Fault("thermal", 79), "thermal takes no code"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(fault, words):
    with pytest.raises(InputError) as caught:
        applies(fault, model("t4"), force=True)
    assert words in caught.value.message


def test_explain_tells_what_nvidia_says_of_79():
    row = explain(79)
    assert (row.mnemonic, row.description) == (
        "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS",
        "GPU has fallen off the bus",
    )
    assert (row.immediate_action, row.investigatory_action) == ("RESTART_BM", "CONTACT_SUPPORT")
    assert (row.recovery, row.xid154_linkage, row.companions) == ("node_power_cycle", "R565", (154, 45))
    assert (row.err_msg, row.category, row.dcgm) == ("GPU has fallen off the bus", "hw_bus", ("all", "FAIL"))


def test_a_reboot_cures_every_xid_but_those_that_need_hands_or_a_board():
    assert {code for code in codes() if not cured_by_reboot(Fault("xid", code))} == {54, 61, 142, 164, 165, 168}


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_reboot_does_not_cure_a_worn_board_or_what_is_around_the_node(kind):
    stays = {"row-remap-failure", "thermal", "power", "slow", "pcie"}
    assert cured_by_reboot(Fault(kind)) is (kind not in stays)


@pytest.mark.parametrize(
    ("reactors", "effect", "kind"),
    [
        ((), None, "xid"),
        ((), Effect.NONE, "xid"),
        ((Reactor.DRA,), Effect.NO_EXECUTE, "gpu-lost"),
        ((Reactor.EKS, Reactor.DRA), Effect.NO_SCHEDULE, "row-remap-pending"),
        ((Reactor.EKS,), None, "thermal"),
        ((Reactor.DEVICE_PLUGIN,), None, "driver-crash"),
        ((), None, "node-down"),
    ],
)
def test_options_that_do_something_are_taken(reactors, effect, kind):
    check_options(reactors, effect, kind)


@pytest.mark.parametrize(
    ("reactors", "effect", "kind", "words"),
    [
        ((Reactor.EKS,), Effect.NO_EXECUTE, "xid", "--as eks-node-monitoring does not write"),
        ((Reactor.DEVICE_PLUGIN, Reactor.NPD), Effect.NONE, "xid", "--as device-plugin,node-problem-detector"),
        ((), Effect.NO_EXECUTE, "thermal", "thermal has none"),
        ((Reactor.DRA,), None, "node-down", "--as does not go with node-down"),
        ((), Effect.NONE, "node-unreachable", "node-unreachable has none"),
    ],
)
def test_options_that_would_do_nothing_are_refused(reactors, effect, kind, words):
    with pytest.raises(InputError) as caught:
        check_options(reactors, effect, kind)
    assert words in caught.value.message


def test_a_fault_survives_writing_and_reading():
    times = ("2026-01-02T03:04:05Z", "2026-01-02T03:14:05.5+01:00")
    faults = [Fault("xid", code) for code in codes()] + [Fault(kind) for kind in KINDS[1:]]
    faults.append(Fault("xid", 79, (Reactor.NVSENTINEL, Reactor.DRA), Effect.NONE, *times))
    assert [read_fault(json.loads(json.dumps(fault_value(fault)))) for fault in faults] == faults


def test_what_is_as_by_default_is_not_written():
    assert fault_value(Fault("gpu-lost")) == {"kind": "gpu-lost"}
    full = Fault("xid", 48, (Reactor.DRA,), Effect.NO_SCHEDULE, since="2026-01-02T03:04:05Z")
    assert fault_value(full) == {
        "kind": "xid",
        "code": 48,
        "as": ["dra"],
        "effect": "NoSchedule",
        "since": "2026-01-02T03:04:05Z",
    }


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"kind": 3},
        {"kind": "voodoo"},
        {"kind": "xid"},
        {"kind": "xid", "code": "79"},
        {"kind": "xid", "code": True},
        {"kind": "xid", "code": 81},
        {"kind": "thermal", "code": 79},
        {"kind": "slow", "as": "dra"},
        {"kind": "slow", "as": ["ghost"]},
        {"kind": "slow", "effect": "Maybe"},
        {"kind": "slow", "since": "yesterday"},
        {"kind": "slow", "since": "2026-01-02T03:04:05"},
        {"kind": "slow", "until": 5},
        {"kind": "slow", "color": "red"},
    ],
    ids=str,
)
def test_a_damaged_fault_is_no_fault(value):
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_fault(value)


def test_the_order_in_which_components_are_named_makes_no_difference():
    one = Fault("slow", reactors=(Reactor.NVSENTINEL, Reactor.DRA, Reactor.DRA))
    other = Fault("slow", reactors=(Reactor.DRA, Reactor.NVSENTINEL))
    assert one == other
    assert fault_value(one)["as"] == ["dra", "nvsentinel"]


def test_faults_are_told_apart_and_sorted_by_kind_and_code():
    faults = [Fault("xid", 119), Fault("xid", 79, effect=Effect.NONE), Fault("xid", 79), Fault("gpu-lost")]
    assert sorted(faults) == list(reversed(faults))
    assert Fault("xid", 79).identity == Fault("xid", 79, effect=Effect.NONE).identity
    assert Fault("xid", 79).identity != Fault("xid", 48).identity
    assert [fault.name for fault in sorted(faults)] == ["gpu-lost", "XID 79", "XID 79", "XID 119"]


def test_an_unknown_kind_is_answered_with_all_there_are():
    with pytest.raises(InputError) as caught:
        fault_kind("melted")
    assert all(kind in (caught.value.hint or "") for kind in KINDS)


@pytest.mark.parametrize("fault", [Fault("gpu-lost"), Fault("slow"), Fault("driver-crash"), Fault("xid", 79)], ids=str)
def test_a_board_without_nvlink_breaks_in_every_other_way(fault):
    assert applies(fault, model("t4")) is None
