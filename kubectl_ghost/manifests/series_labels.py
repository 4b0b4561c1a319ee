"""The labels of dcgm-exporter's series, under the names that a Prometheus keeps them by.

They differ in the field: where a scrape does not honour the exporter's labels, the pod that holds a GPU is in
`exported_pod`; the exporter's old namespace says `pod_name` and `uuid`; its newest code prints `hostname`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from kubectl_ghost.domain.errors import InputError

_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class SeriesLabels:
    """The name of each label that rules and dashboards use; the defaults are dcgm-exporter's own."""

    node: str = "Hostname"
    gpu: str = "gpu"
    uuid: str = "UUID"
    bus: str = "pci_bus_id"
    model: str = "modelName"
    profile: str = "GPU_I_PROFILE"
    instance: str = "GPU_I_ID"
    namespace: str = "namespace"
    pod: str = "pod"
    container: str = "container"
    code: str = "err_code"
    message: str = "err_msg"

    @property
    def of_gpu(self) -> tuple[str, ...]:
        """What tells GPUs apart and lets somebody find one."""
        return self.node, self.gpu, self.uuid, self.bus, self.model

    @property
    def of_device(self) -> tuple[str, ...]:
        """The same for what can be held: a whole GPU or a MIG instance."""
        return *self.of_gpu, self.profile, self.instance

    @property
    def of_holder(self) -> tuple[str, ...]:
        """Who holds a device."""
        return self.namespace, self.pod, self.container


def renamed(pairs: Iterable[str]) -> SeriesLabels:
    """The labels with some of them under other names.

    Args:
        pairs: each dcgm-exporter's name of a label and the one that it has in Prometheus, `pod=exported_pod`.

    Raises:
        InputError: if a pair is none, names a label that is not used, or gives two labels one name.
    """
    known = {str(field.default): field.name for field in fields(SeriesLabels)}
    changes: dict[str, str] = {}
    for pair in pairs:
        name, _, other = pair.partition("=")
        if name not in known:
            raise InputError(f'invalid label "{pair}"', f"Write pod=exported_pod. The labels are: {', '.join(known)}")
        if not _LABEL_NAME.fullmatch(other):
            raise InputError(f'invalid label "{pair}": "{other}" is no name of a label in Prometheus')
        changes[known[name]] = other
    labels = replace(SeriesLabels(), **changes)
    names = [getattr(labels, field.name) for field in fields(labels)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"two labels cannot both be called {twice[0]}")
    return labels
