"""What a pod puts on its GPUs, from its annotations: ours, and those of fake-gpu-operator.

Nothing that a pod says is fatal: what is not understood is reported, and counts as not said.

Not read of fake-gpu-operator's: the label `workloadKind` and Run:ai's PodGroups, whose inference is measured from
requests, and names of pods that begin with `runai-idle-gpu-`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from kubectl_ghost.domain.keys import (
    GPU_MEMORY_ANNOTATION,
    GPU_UTIL_ANNOTATION,
    PHASES_ANNOTATION,
    SIMULATED_FRACTION_ANNOTATION,
    SIMULATED_UTILIZATION_ANNOTATION,
    Json,
)
from kubectl_ghost.domain.phase_parsing import OTHER_PHASE, parse_memory, parse_phases, parse_span
from kubectl_ghost.domain.phases import LoadPlan, Memory, constant
from kubectl_ghost.domain.wording import quoted

_Value = TypeVar("_Value")
_FRACTION = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?(%?)")
LOAD_ANNOTATIONS = (
    PHASES_ANNOTATION,
    GPU_UTIL_ANNOTATION,
    GPU_MEMORY_ANNOTATION,
    SIMULATED_UTILIZATION_ANNOTATION,
    SIMULATED_FRACTION_ANNOTATION,
)
"""The annotations of a pod that say what load it puts on its GPUs."""
DEFAULT_PLAN = constant(*OTHER_PHASE)
"""Of a pod that says nothing, and of a GPU that is declared busy without a pod."""


def load_plan(metadata: Json) -> tuple[LoadPlan, tuple[str, ...]]:
    """A pod's plan, and a sentence about each annotation that is not understood.

    Phases decide before a utilisation, and our annotations before fake-gpu-operator's. A memory that is declared by
    itself holds in all phases.

    Args:
        metadata: the pod's.
    """
    annotations = metadata.get("annotations") or {}
    if not any(key in annotations for key in LOAD_ANNOTATIONS):
        return DEFAULT_PLAN, ()
    return _plan(tuple(annotations.get(key) for key in LOAD_ANNOTATIONS))


@lru_cache(maxsize=1024)
def _plan(values: tuple[str | None, ...]) -> tuple[LoadPlan, tuple[str, ...]]:
    said = dict(zip(LOAD_ANNOTATIONS, values, strict=True))
    problems: list[str] = []

    def read(key: str, parse: Callable[[str], _Value]) -> _Value | None:
        if (text := said[key]) is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            problems.append(f"{key}: {error}")
            return None

    plans = (
        read(PHASES_ANNOTATION, parse_phases),
        read(GPU_UTIL_ANNOTATION, _constant),
        read(SIMULATED_UTILIZATION_ANNOTATION, _constant),
    )
    memories = (read(GPU_MEMORY_ANNOTATION, parse_memory), read(SIMULATED_FRACTION_ANNOTATION, _fraction))
    plan = next((plan for plan in plans if plan is not None), DEFAULT_PLAN)
    memory = next((memory for memory in memories if memory is not None), None)
    return plan if memory is None else _with_memory(plan, memory), tuple(problems)


def _constant(text: str) -> LoadPlan:
    low, high = sorted(parse_span(text))
    return constant((low + high) / 2, OTHER_PHASE[1], (high - low) / 2)


def _fraction(text: str) -> Memory:
    """fake-gpu-operator's part of a GPU: `0.5` is half of its memory; `50%` can only mean the same."""
    match = _FRACTION.fullmatch(text.strip())
    percent = float(match.group(1)) * (1 if match.group(2) else 100) if match else 0.0
    if not 0 < percent <= 100:
        raise ValueError(f"{quoted(text)} is no fraction above 0 and up to 1, such as 0.5")
    return Memory(percent)


def _with_memory(plan: LoadPlan, memory: Memory) -> LoadPlan:
    interruption = plan.interruption and replace(plan.interruption, memory=None)
    return LoadPlan(tuple(replace(phase, memory=memory) for phase in plan.phases), interruption)
