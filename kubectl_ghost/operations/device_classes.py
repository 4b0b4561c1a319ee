"""The cluster-wide DeviceClasses: made when missing, never touched when they are somebody else's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_ghost.cluster.errors import AlreadyExists, Conflict
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import DEVICE_CLASSES, RESOURCE_SLICES
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import has_our_label
from kubectl_ghost.domain.hardware import Advertise, PoolSettings
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests.device_class import gpu_device_class, mig_device_class
from kubectl_ghost.operations.changes import Change, Verb

_EXTENDED = "extendedResourceName"
_ATTEMPTS = 8


def require_dra(reader: Reader, settings: PoolSettings) -> None:
    """DRA pools need resource.k8s.io/v1, which Kubernetes serves from 1.34.

    Raises:
        GhostError: naming the server's version and the way out.
    """
    if settings.advertise.slices and not reader.served(RESOURCE_SLICES):
        major, minor = reader.server_version()
        raise GhostError(
            f"resource.k8s.io/v1 is not served by this cluster (Kubernetes {major}.{minor}; it comes with 1.34)",
            "Use --advertise device-plugin: nodes then offer nvidia.com/gpu and no ResourceSlices.",
        )


def refuse_clash(pools: Iterable[PoolSettings], wanted: PoolSettings) -> None:
    """`both` beside `dra`: with the class serving `nvidia.com/gpu`, one GPU would be offered twice by one name.

    Raises:
        GhostError: naming the other pool.
    """
    clash = {Advertise.BOTH: Advertise.DRA, Advertise.DRA: Advertise.BOTH}.get(wanted.advertise)
    for other in pools:
        if other.name != wanted.name and other.advertise is clash:
            raise GhostError(
                f'pool "{wanted.name}" cannot be advertised as {wanted.advertise.value} beside pool "{other.name}", '
                f"which is advertised as {other.advertise.value}: nvidia.com/gpu would be served two ways",
                f"Use --advertise {clash.value} or device-plugin for {wanted.name}, or change {other.name} first.",
            )


def ensure_device_classes(
    writer: Writer, pools: Iterable[PoolSettings], warnings: list[str], *, unread: bool = False
) -> Iterator[Change]:
    """Create or update the classes that these pools need; with no DRA pool left, delete those that are ours.

    Args:
        pools: every pool of the cluster, as it is going to be.
        warnings: receives a line for what the server or somebody else's class does not allow.
        unread: there are further pools, whose declarations cannot be read: then nothing is taken away.
    """
    advertised = {pool.advertise for pool in pools}
    if not any(way.slices for way in advertised):
        if not unread:
            yield from delete_device_classes(writer)
        return
    extended = Advertise.DRA in advertised
    gpu = _ensure(writer, gpu_device_class(extended_resource=extended), keep_extended=unread)
    yield gpu
    yield _ensure(writer, mig_device_class())
    served = gpu.body["spec"].get(_EXTENDED) == keys.GPU_RESOURCE
    if extended and not served:
        warnings.append(_not_served(writer, gpu.body))
    elif served and not extended and not has_our_label(gpu.body):
        warnings.append(
            f"DeviceClass {keys.GPU_DEVICE_CLASS} is not this tool's and serves {keys.GPU_RESOURCE} through claims: "
            "GPUs that are also offered as capacity can be handed out twice"
        )


def delete_device_classes(writer: Writer) -> Iterator[Change]:
    """Delete the classes that are ours; those of others stay."""
    if not writer.served(DEVICE_CLASSES):
        return
    for name in (keys.GPU_DEVICE_CLASS, keys.MIG_DEVICE_CLASS):
        live = writer.find(DEVICE_CLASSES, name)
        if live is not None and has_our_label(live):
            writer.delete(DEVICE_CLASSES, live)
            yield Change(DEVICE_CLASSES, Verb.DELETED, live)


def _ensure(writer: Writer, wanted: Json, *, keep_extended: bool = False) -> Change:
    """Bring one class to its wanted spec, again if someone else (a second run of ours, say) writes meanwhile."""
    for attempt in range(_ATTEMPTS):
        try:
            return _ensure_once(writer, wanted, keep_extended=keep_extended)
        except (AlreadyExists, Conflict):
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _ensure_once(writer: Writer, wanted: Json, *, keep_extended: bool) -> Change:
    live = writer.find(DEVICE_CLASSES, wanted["metadata"]["name"])
    if live is None:
        return Change(DEVICE_CLASSES, Verb.CREATED, writer.create(DEVICE_CLASSES, wanted, whole=True))
    patch = {
        key: wanted["spec"].get(key)
        for key in ("selectors", _EXTENDED)
        if live["spec"].get(key) != wanted["spec"].get(key)
    }
    if keep_extended and _EXTENDED not in wanted["spec"]:
        patch.pop(_EXTENDED, None)
    if not patch or not has_our_label(live):
        return Change(DEVICE_CLASSES, Verb.UNCHANGED, live)
    after = writer.patch(DEVICE_CLASSES, live, {"spec": patch})
    # A server whose gate is off takes the field with a 200 and drops it: then nothing has changed.
    return Change(DEVICE_CLASSES, Verb.UNCHANGED if after["spec"] == live["spec"] else Verb.CONFIGURED, after)


def _not_served(reader: Reader, live: Json) -> str:
    if not has_our_label(live):
        return (
            f"DeviceClass {keys.GPU_DEVICE_CLASS} is not this tool's and carries no {_EXTENDED}: "
            "pods that ask for nvidia.com/gpu will not be served by this pool, claims will"
        )
    major, minor = reader.server_version()
    return (
        f"Kubernetes {major}.{minor} drops {_EXTENDED} here (feature gate DRAExtendedResource, on from 1.36): "
        "pods that ask for nvidia.com/gpu will not be served by this pool, claims will"
    )
