"""Splitting GPUs into MIG instances as a change of a node's declaration: what an administrator or a label asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kubectl_ghost.domain.catalogue import model_keys
from kubectl_ghost.domain.errors import GhostError, InputError
from kubectl_ghost.domain.hardware import MigConfig, MigMode, NodeHardware, SharingKind
from kubectl_ghost.domain.identity import gpu_name
from kubectl_ghost.domain.mig import MigInstance, MigTable, mig_table
from kubectl_ghost.domain.mig_layouts import DISABLED, layout_of, named_layout
from kubectl_ghost.domain.mig_placement import check_layout
from kubectl_ghost.domain.requests import PENDING

CUSTOM = "custom"
"""Name of a layout that no configuration of mig-parted's describes; its MIG manager would need a file for it."""
SUCCESS = "success"
FAILED = "failed"

Layout = tuple[MigInstance, ...] | None
"""The instances of a GPU; None is MIG mode switched off."""


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """What GPUs are to be split into: a list of profiles, a configuration's name, or neither: MIG switched off."""

    profiles: str | None = None
    config: str | None = None


def split_as_asked(
    hardware: NodeHardware, gpus: Iterable[int], request: SplitRequest, *, force: bool = False
) -> NodeHardware:
    """The same node with these GPUs split as a user asks; done twice it changes nothing.

    Args:
        force: GPUs that are declared busy are released instead of refused.

    Raises:
        GhostError: for a pool of dynamic MIG, a model without MIG, a busy GPU, a configuration for a part of a node.
        InputError: for a profile or configuration that the model does not have, or instances that clash.
    """
    chosen = tuple(gpus)
    _require_static(hardware)
    table = _require_mig(hardware)
    if request.config is not None:
        if len(chosen) < hardware.settings.gpus:
            raise InputError(
                f'a MIG configuration is for a whole node, and of node "{hardware.node_name}" only '
                f"{', '.join(map(gpu_name, chosen))} is named",
                "Name the node alone, or use --profiles for single GPUs.",
            )
        return configure_mig(hardware, request.config, force=force)
    first = f"{hardware.node_name}/{gpu_name(min(chosen, default=0))}"
    layout = None if request.profiles is None else layout_of(request.profiles, table, first)
    return split(hardware, chosen, layout, force=force)


def split(hardware: NodeHardware, gpus: Iterable[int], layout: Layout, *, force: bool = False) -> NodeHardware:
    """The same node with each of these GPUs split into these instances; faults stay.

    The labels of NVIDIA's MIG manager then name the layout as a whole: `all-disabled` when no GPU is split any more,
    else `custom`. That is an approximation: a real one names a configuration of its own file. A node whose layout is
    as asked for already keeps the name that it has.

    Raises:
        GhostError: for a pool of dynamic MIG or shared by MPS, or a GPU that is declared busy, unless forced.
        InputError: for a profile or start that the model does not have, or instances that clash.
    """
    _require_static(hardware)
    changed = _with_layouts(hardware, dict.fromkeys(gpus, layout), force=force)
    config = changed.mig_config
    if changed.gpus == hardware.gpus and (config is None or config.state == SUCCESS):
        return hardware
    unsplit = all(state.mig is None for _, state in changed.gpus)
    return replace(changed, mig_config=MigConfig(DISABLED if unsplit else CUSTOM, SUCCESS))


def configure_mig(hardware: NodeHardware, config_name: str, *, force: bool = False) -> NodeHardware:
    """The same node with all of its GPUs split as mig-parted's configuration of this name says.

    Raises:
        GhostError: as for `split`.
        InputError: listing the configurations that the model has.
    """
    _require_static(hardware)
    layout = named_layout(config_name, mig_table(hardware.settings.model))
    changed = _with_layouts(hardware, dict.fromkeys(range(hardware.settings.gpus), layout), force=force)
    return replace(changed, mig_config=MigConfig(config_name, SUCCESS))


def answer_mig_request(hardware: NodeHardware, config_name: str) -> NodeHardware:
    """What a node's MIG manager makes of the label `nvidia.com/mig.config`: the layout and `success`, or `failed`.

    What is impossible or unknown leaves the layout as it is, and so does a GPU that is declared busy. A request that
    has been answered is not answered again.
    """
    config = hardware.mig_config
    if config is not None and config.name == config_name and config.state != PENDING:
        return hardware
    try:
        return configure_mig(hardware, config_name)
    except GhostError:
        return fail_mig_request(hardware, config_name)


def mig_problem(hardware: NodeHardware, config_name: str) -> str:
    """Why a configuration cannot be made, "" if it can, as far as that does not depend on pods."""
    try:
        configure_mig(hardware, config_name)
    except GhostError as error:
        return error.message
    return ""


def fail_mig_request(hardware: NodeHardware, config_name: str) -> NodeHardware:
    """The node as it is, with the configuration marked as failed: because pods hold what would go, say."""
    return replace(hardware, mig_config=MigConfig(config_name, FAILED))


def resplit_gpus(old: NodeHardware, new: NodeHardware) -> set[int]:
    """The GPUs whose layout differs between two declarations of a node."""
    return {index for index in range(old.settings.gpus) if old.gpu(index).mig != new.gpu(index).mig}


def unsourced_figures(hardware: NodeHardware) -> dict[str, list[str]]:
    """By profile, the figures of a node's instances that have no source, and so are left out of slices and labels."""
    table = mig_table(hardware.settings.model)
    if table is None:
        return {}
    profiles = {instance.profile for _, state in hardware.gpus for instance in state.mig or ()}
    missing = {
        name: [figure for figure, amount in table.profile(name).capacities.items() if amount is None]
        for name in sorted(profiles)
    }
    return {name: figures for name, figures in missing.items() if figures}


def _with_layouts(hardware: NodeHardware, layouts: Mapping[int, Layout], *, force: bool) -> NodeHardware:
    changed = hardware
    for index, wanted in layouts.items():
        state = hardware.gpu(index)
        layout = None if wanted is None else tuple(sorted(wanted, key=lambda instance: instance.start))
        if layout == state.mig:
            continue
        name = f"{hardware.node_name}/{gpu_name(index)}"
        if layout is not None:
            _refuse_mps(hardware)
            check_layout(_require_mig(hardware), layout, name)
        if state.occupancy is not None and not force:
            raise GhostError(
                f"{name} is declared busy, so it is not split anew",
                f"Release it first with: kubectl ghost release {name}",
            )
        changed = changed.with_gpu(index, replace(state, mig=layout, occupancy=None))
    return changed


def _require_static(hardware: NodeHardware) -> None:
    if hardware.settings.mig is MigMode.DYNAMIC:
        name = hardware.settings.name
        raise GhostError(
            f'pool "{name}" has dynamic MIG: the scheduler chooses the instances itself, so none can be laid out',
            f"Claim the profile that is needed, or change the pool: kubectl ghost add-pool {name} --mig static",
        )


def _require_mig(hardware: NodeHardware) -> MigTable:
    settings = hardware.settings
    table = mig_table(settings.model)
    if table is None:
        raise GhostError(
            f'GPU model {settings.model} of node "{hardware.node_name}" has no MIG', f"Models with it: {mig_models()}."
        )
    return table


def mig_models() -> str:
    """The catalogue keys of all models with MIG, comma separated."""
    return ", ".join(key for key in model_keys() if mig_table(key) is not None)


def _refuse_mps(hardware: NodeHardware) -> None:
    sharing = hardware.settings.sharing
    if sharing is not None and sharing.kind is SharingKind.MPS:
        name = hardware.settings.name
        raise GhostError(
            f'pool "{name}" shares its GPUs by MPS, which the device plugin does not do with MIG devices',
            f"Change that first with: kubectl ghost add-pool {name} --sharing none",
        )
