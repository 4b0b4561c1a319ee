"""What can be asked of the agent, the same in this process and in a pod."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from kubectl_ghost.domain.dcgm_fields import LABEL, Field, default_fields, parse_counters, select_fields
from kubectl_ghost.domain.errors import InputError

PORT = 9400
"""dcgm-exporter's own (NVIDIA/dcgm-exporter, pkg/cmd/app.go)."""
COMPATIBILITY = {
    "hostname": "the label is called hostname, as in dcgm-exporter since May 2026",
    "old-namespace": "uuid, pod_name, pod_namespace, container_name, as with dcgm-exporter -o",
    "pod-labels": "labels of the pod beside its name, as with --kubernetes-enable-pod-labels",
    "pod-uid": "pod_uid beside the pod's name, as with --kubernetes-enable-pod-uid",
    "mig-parent": "a claimed MIG device is shown on its GPU's series, as dcgm-exporter does it",
}
"""Ways of dcgm-exporter that differ from release to release or by its flags: the words of --compat."""
LEAST_TIME_SCALE, MOST_TIME_SCALE = 1e-6, 1e6
"""CHOICE. Beyond a million a pod's first second is eleven days, and not far from there numbers end."""
_SHARD = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class Shard:
    """Which part of the nodes an agent serves: number `number` of `total`, from 1."""

    number: int = 1
    total: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"


def parse_shard(text: str) -> Shard:
    """`2/4`.

    Raises:
        InputError: if it is spelled in another way, or there is no such part.
    """
    match = _SHARD.fullmatch(text)
    if match is None or int(match.group(1)) > int(match.group(2)):
        raise InputError(f'invalid --shard "{text}"', "Write 2/4 for the second of four agents.")
    return Shard(int(match.group(1)), int(match.group(2)))


def parse_compatibility(text: str) -> frozenset[str]:
    """A comma-separated list of COMPATIBILITY's words.

    Raises:
        InputError: naming them all, if one is unknown.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in COMPATIBILITY:
            raise InputError(f'unknown --compat "{word}"', f"It is one or more of: {', '.join(COMPATIBILITY)}")
    return frozenset(words)


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """What the agent serves, and how.

    Attributes:
        fields: the DCGM fields, ordered by their ids; `counters` is the text of the CSV file that they came from.
        compatibility: words of COMPATIBILITY.
        jitter: by how much utilisation may differ from what is declared, in percent of it; 0: constant.
        seed: of that jitter.
        time_scale: how many seconds of a pod's phases go by in one.
        read_only: do not record on pods which GPUs they have.
    """

    fields: tuple[Field, ...] = field(default_factory=default_fields)
    fields_text: str = "default"
    counters: str = ""
    compatibility: frozenset[str] = frozenset()
    jitter: float = 0.0
    seed: int = 0
    time_scale: float = 1.0
    shard: Shard = Shard()
    read_only: bool = False

    def arguments(self) -> list[str]:
        """The agent's command line for these options, without port and address; a CSV file is passed by its path."""
        found: list[str] = []
        if not self.counters and self.fields_text != "default":
            found += ["--fields", self.fields_text]
        if self.compatibility:
            found += ["--compat", ",".join(sorted(self.compatibility))]
        if self.jitter:
            found += ["--jitter", _exact(self.jitter), "--seed", str(self.seed)]
        if self.time_scale != 1:
            found += ["--time-scale", _exact(self.time_scale)]
        if self.shard.total > 1:
            found += ["--shard", str(self.shard)]
        return [*found, *(["--read-only"] if self.read_only else [])]


def _exact(number: float) -> str:
    """As short as it can be written without being another one: 20, 0.1."""
    return str(number).removesuffix(".0")


def agent_options(
    *,
    fields: str = "default",
    counters: str | None = None,
    compat: Iterable[str] = (),
    jitter: float = 0.0,
    seed: int = 0,
    time_scale: float = 1.0,
    shard: str = "",
    read_only: bool = False,
) -> AgentOptions:
    """The options that a command line means.

    Args:
        fields: groups and names of fields, comma separated.
        counters: the text of a dcgm-exporter CSV file, in the place of `fields`; None for no such file.
        compat: each a comma-separated list.

    Raises:
        InputError: naming what is not understood.
    """
    if not 0 <= jitter <= 100:
        raise InputError(f"invalid --jitter {jitter:g}", "It is a percentage from 0 to 100.")
    if not LEAST_TIME_SCALE <= time_scale <= MOST_TIME_SCALE:
        hint = "It is a number from 0.000001 to 1000000: 60 makes a minute an hour."
        raise InputError(f"invalid --time-scale {time_scale:g}", hint)
    chosen = select_fields(fields) if counters is None else parse_counters(counters)
    if all(field.prom_type == LABEL for field in chosen):
        raise InputError("only labels are named, so there would be no series", "Name a field beside them.")
    words: frozenset[str] = frozenset().union(*map(parse_compatibility, compat))
    return AgentOptions(
        fields=chosen,
        fields_text=fields,
        counters=counters or "",
        compatibility=words,
        jitter=jitter,
        seed=seed,
        time_scale=time_scale,
        shard=parse_shard(shard) if shard else Shard(),
        read_only=read_only,
    )
