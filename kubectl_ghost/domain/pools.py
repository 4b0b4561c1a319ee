"""From what a user asked for to a pool's settings: defaults, bounds, and what a second `add-pool` changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from kubectl_ghost.domain.catalogue import GpuModel, find_model, model
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.hardware import MOST_GPUS, Advertise, MigMode, MigStrategy, PoolSettings, Taint, TaintMode
from kubectl_ghost.domain.mig import mig_table
from kubectl_ghost.domain.naming import check_label_value, check_pool_name
from kubectl_ghost.domain.quantity import mebibytes, parse_quantity
from kubectl_ghost.domain.sharing import UNSHARED, SharingRequest, check_sharing
from kubectl_ghost.domain.splitting import mig_models

DEFAULT_MODEL = "h100"
DEFAULT_COUNT = 4
DEFAULT_PODS = 110
MOST_NODES = 100_000
MOST_PODS = 10_000
_LEAST_MEMORY = 2**20
_LEAST_CPU = Decimal("0.001")
_MOST = 2**63
"""The API server keeps quantities in 64 bits, and whole thousandths of a CPU."""


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """The flags of `add-pool`; None where the user said nothing."""

    model: str | None = None
    gpus: int | None = None
    advertise: Advertise | None = None
    cpu: str | None = None
    memory: str | None = None
    pods: int | None = None
    taint: TaintMode | None = None
    labels: tuple[tuple[str, str], ...] | None = None
    taints: tuple[Taint, ...] | None = None
    zones: tuple[str, ...] | None = None
    racks: tuple[str, ...] | None = None
    mig: MigMode | None = None
    mig_strategy: MigStrategy | None = None
    sharing: SharingRequest | None = None


def default_cpu(gpus: int) -> str:
    """CPUs of a node with so many GPUs, where no cloud preset says: this project's choice, like default_memory."""
    return str(_by_gpus(gpus, of_four=144, of_eight=192))


def default_memory(gpus: int) -> str:
    """Memory of a node with so many GPUs: 2048Gi for eight, 960Gi for four, less in proportion."""
    return mebibytes(_by_gpus(gpus, of_four=960, of_eight=2048) * 1024)


def _by_gpus(gpus: int, *, of_four: int, of_eight: int) -> int:
    if gpus <= 4:
        return of_four * gpus // 4
    return max(of_four, of_eight * min(gpus, 8) // 8)


def configure(name: str, existing: PoolSettings | None, request: PoolRequest) -> PoolSettings:
    """The settings of a new pool, or those of an existing one with what the request changes.

    What the request leaves open stays as it is in an existing pool; but a figure that is the default of the old model
    or GPU count becomes the default of the new one, so that `--gpu t4` does not leave a T4 node with an H100's CPUs.

    Raises:
        InputError: if anything is unknown or out of range.
    """
    if request.model is None and existing is not None:
        chosen = model(existing.model)
    else:
        chosen = find_model(DEFAULT_MODEL if request.model is None else request.model)
    gpus = _gpus(chosen, existing, request)
    cpu, memory = _size(gpus, existing, request)
    base = existing or PoolSettings(
        name=name,
        model=chosen.key,
        gpus=gpus,
        advertise=Advertise.BOTH,
        cpu=cpu,
        memory=memory,
        pods=DEFAULT_PODS,
    )
    given = {
        field: getattr(request, field)
        for field in (
            "advertise",
            "pods",
            "taint",
            "labels",
            "taints",
            "zones",
            "racks",
            "mig",
            "mig_strategy",
            "sharing",
        )
        if getattr(request, field) is not None
    }
    if request.sharing == UNSHARED:
        given["sharing"] = None
    settings = replace(base, model=chosen.key, gpus=gpus, cpu=cpu, memory=memory, **given)
    _check(settings)
    return settings


def _gpus(chosen: GpuModel, existing: PoolSettings | None, request: PoolRequest) -> int:
    if request.gpus is not None:
        return request.gpus
    if existing is not None and existing.gpus != model(existing.model).gpus_per_node:
        return existing.gpus
    return chosen.gpus_per_node


def _size(gpus: int, existing: PoolSettings | None, request: PoolRequest) -> tuple[str, str]:
    cpu, memory = default_cpu(gpus), default_memory(gpus)
    if existing is not None and existing.cpu != default_cpu(existing.gpus):
        cpu = existing.cpu
    if existing is not None and existing.memory != default_memory(existing.gpus):
        memory = existing.memory
    return cpu if request.cpu is None else request.cpu, memory if request.memory is None else request.memory


def _check(settings: PoolSettings) -> None:
    check_range("--gpus-per-node", settings.gpus, 1, MOST_GPUS)
    check_range("--pods", settings.pods, 1, MOST_PODS)
    try:
        cpu, memory = parse_quantity(settings.cpu), parse_quantity(settings.memory)
    except ValueError as error:
        raise InputError(f"{error}", "Use forms such as --cpu 192 and --memory 2048Gi.") from error
    if not _LEAST_CPU <= cpu < _MOST:
        raise InputError(f'invalid --cpu "{settings.cpu}": it must be at least 1m')
    if memory >= _MOST:
        raise InputError(f'invalid --memory "{settings.memory}": it must be less than 8Ei')
    if memory < _LEAST_MEMORY:
        raise InputError(
            f'invalid --memory "{settings.memory}": that is {memory} bytes',
            f"Did you mean {settings.memory.lstrip('-')}Gi?" if settings.memory.lstrip("-").isdigit() else None,
        )
    if settings.racks and len(settings.racks) < len(settings.zones):
        raise InputError(
            f"{len(settings.racks)} rack(s) cannot stand in {len(settings.zones)} zones: a rack stands in one",
            "Name at least as many racks as zones.",
        )
    for flag, words in (("--zones", settings.zones), ("--racks", settings.racks)):
        if len(set(words)) < len(words):
            raise InputError(f"{flag} names one twice: {','.join(words)}")
        for word in words:
            check_label_value(word, flag)
    _check_mig(settings)
    check_sharing(settings)


def _check_mig(settings: PoolSettings) -> None:
    if settings.mig is MigMode.STATIC:
        return
    if mig_table(settings.model) is None:
        raise InputError(
            f"--mig dynamic needs GPUs with MIG, and {settings.model} has none", f"Models with it: {mig_models()}."
        )
    if not settings.advertise.slices:
        raise InputError(
            "--mig dynamic lives in ResourceSlices, and --advertise device-plugin publishes none",
            "Use --advertise dra or both, or --mig static.",
        )


def check_range(flag: str, number: int, least: int, most: int) -> None:
    """Refuse a number outside its bounds.

    Raises:
        InputError: naming the flag and the bounds.
    """
    if not least <= number <= most:
        raise InputError(f"invalid {flag} {number}: it must be from {least} to {most}")


def check_pool(name: str, count: int) -> None:
    """The name and the size of a pool.

    Raises:
        InputError: if either is out of bounds.
    """
    check_range("number of nodes", count, 1, MOST_NODES)
    check_pool_name(name, count)
