"""From what is known of a node to the devices that dcgm-exporter would list there."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from ghost_agent.fleet import NodeRecord
from ghost_agent.labels import Block, Identity, Spelling, free_block, used_block
from ghost_agent.listed import ListedDevice, ListedGpu, ListedNode, Work
from kubectl_ghost.domain.attribution import Users, uses
from kubectl_ghost.domain.board_figures import board_figures
from kubectl_ghost.domain.catalogue import driver, model
from kubectl_ghost.domain.consequences import is_busy
from kubectl_ghost.domain.dcgm_fields import Field, classic
from kubectl_ghost.domain.declaration_reading import decode
from kubectl_ghost.domain.devices import Device, offers
from kubectl_ghost.domain.fault_series import effect_on, xids_on
from kubectl_ghost.domain.hardware import LastXid, NodeHardware
from kubectl_ghost.domain.holders import assignments, is_finished, unrecorded
from kubectl_ghost.domain.identity import gpu_uuid, pci_addresses
from kubectl_ghost.domain.keys import HARDWARE_ANNOTATION
from kubectl_ghost.domain.load import DEFAULT_PLAN, load_plan
from kubectl_ghost.domain.mig import mig_uuid
from kubectl_ghost.domain.mig_instances import instance_figures, listed_devices
from kubectl_ghost.domain.telemetry import VARIANTS


def listed_node(name: str, record: NodeRecord, fields: Collection[Field], words: Spelling, parents: bool) -> ListedNode:
    """What is to be said about a node.

    Args:
        parents: show a claimed MIG device on its GPU's series, not on its own.

    Raises:
        GhostError: if the node's declaration cannot be read.
    """
    metadata = (record.node or {})["metadata"]
    hardware = decode(metadata["annotations"].get(HARDWARE_ANNOTATION, ""), name)
    problems: dict[tuple[str, str], None] = {}
    offered = offers(hardware) if record.pods else {}
    alive = [pod for pod in record.pods.values() if not is_finished(pod)]
    given = assignments(alive, offered) if offered else {}
    used = uses(name, offered, given, record.claims.values(), alive)
    builder = _Builder(name, hardware, used, _label_values(fields), words, parents, problems)
    created = _seconds(metadata.get("creationTimestamp", ""))
    answers = not hardware.faults and hardware.reboot is None
    gpus = tuple(builder.gpu(index, created) for index in range(hardware.settings.gpus)) if answers else ()
    return ListedNode(
        name,
        hardware.settings.name,
        answers,
        tuple(gpu for gpu in gpus if not gpu.effect.gone),
        tuple(problems),
        tuple(unrecorded(alive, given)),
    )


@dataclass(frozen=True, slots=True)
class _Builder:
    node: str
    hardware: NodeHardware
    used: Users
    labels: dict[str, str]
    words: Spelling
    parents: bool
    problems: dict[tuple[str, str], None]

    def gpu(self, index: int, created: float) -> ListedGpu:
        uuid = gpu_uuid(self.node, index)
        mig_mode, devices = listed_devices(self.hardware, index, self.used)
        xids = xids_on(self.hardware, index)
        listed = [self._device(device, uuid, xids) for device in devices]
        if self.parents and any(device.instance for device in devices):
            listed.insert(0, self._parent(index, uuid, devices, xids))
        return ListedGpu(
            uuid=uuid,
            model=self.hardware.settings.model,
            variant=zlib.crc32(uuid.encode()) % VARIANTS,
            mig_mode=mig_mode,
            effect=effect_on(self.hardware, index),
            created=created,
            peers=tuple(peer for peer in range(self.hardware.settings.gpus) if peer != index),
            devices=tuple(listed),
        )

    def _device(self, device: Device, uuid: str, xids: tuple[LastXid, ...]) -> ListedDevice:
        key = self.hardware.settings.model
        memory, reserved, share = model(key).memory_mib, board_figures(key).fb_reserved_mib, 1.0
        number = None
        if device.instance is not None:
            figures = instance_figures(key, device.instance)
            memory, share = figures.memory_mib, figures.share
            reserved = int(reserved * figures.memory_share)
            number = (device.instance.profile, figures.number)
        identity = self._identity(device.gpu, uuid, number)
        return ListedDevice(
            device.name,
            tuple(self._blocks(identity, device, uuid)),
            tuple(self._work(device)),
            memory,
            reserved,
            share,
            xids,
        )

    def _parent(self, index: int, uuid: str, devices: tuple[Device, ...], xids: tuple[LastXid, ...]) -> ListedDevice:
        """The whole GPU beside its instances, with the claims of all of them; its memory is in the instances."""
        identity = self._identity(index, uuid, None)
        claimed = [
            block for device in devices for block in self._blocks(identity, device, uuid, whole=True) if block.back
        ]
        blocks = claimed or [free_block(identity, self.labels, self.words)]
        return ListedDevice(devices[0].name, tuple(blocks), (), 0, 0, 0.0, xids)

    def _identity(self, index: int, uuid: str, instance: tuple[str, int] | None) -> Identity:
        settings = self.hardware.settings
        board = model(settings.model)
        address = pci_addresses(board, settings.gpus)[index].bus_id
        domain, _, rest = address.partition(":")
        return Identity(self.node, index, uuid, f"{domain:0>8}:{rest}".upper(), board.nvml_name, instance)

    def _blocks(self, identity: Identity, device: Device, uuid: str, *, whole: bool = False) -> Iterator[Block]:
        mig = None
        if device.instance is not None:
            mig = (device.instance.profile, mig_uuid(uuid, device.instance.profile, device.instance.start))
        shown = self.used.get(device.name, ())
        if self.parents and device.instance is not None:
            shown = tuple((use, pod) for use, pod in shown if (use.claim is not None) is whole)
        for use, pod in shown:
            yield used_block(identity, self.labels, self.words, use, pod, mig)
        if not shown:
            yield free_block(identity, self.labels, self.words)

    def _work(self, device: Device) -> Iterator[Work]:
        pods = {pod["metadata"]["uid"]: pod for _, pod in self.used.get(device.name, ())}
        for pod in pods.values():
            plan, problems = load_plan(pod["metadata"])
            metadata = pod["metadata"]
            self.problems.update(
                dict.fromkeys((f"{metadata['namespace']}/{metadata['name']}", text) for text in problems)
            )
            if pod["status"].get("phase") == "Running":
                yield Work(plan, _seconds(pod["status"].get("startTime", "")))
        if not pods and self._declared_busy(device):
            yield Work(DEFAULT_PLAN, 0.0)

    def _declared_busy(self, device: Device) -> bool:
        state = self.hardware.gpu(device.gpu)
        if state.occupancy is None or not is_busy(state):
            return False
        return not state.occupancy.instances or device.instance in state.occupancy.instances


def _label_values(fields: Collection[Field]) -> dict[str, str]:
    """The exporter's label fields that are known; what no source tells is left out, as DCGM's blanks are."""
    known = {"DCGM_FI_DRIVER_VERSION": driver().version, "DCGM_FI_DEV_BRAND": driver().brand}
    asked = [field for field in fields if field.prom_type == "label" and classic(field).name in known]
    return {field.name: known[classic(field).name] for field in asked}


def _seconds(text: str) -> float:
    """Seconds since 1970 of a Kubernetes time; 0 where there is none."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() if text else 0.0
