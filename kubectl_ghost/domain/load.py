"""What a pod puts on its GPUs, from its annotations: ours, and those of fake-gpu-operator.

Nothing that a pod says is fatal: what is not understood is reported, and counts as not said.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

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
    said, problems = dict(zip(LOAD_ANNOTATIONS, values, strict=True)), []
    plan, memory = None, None
    if (text := said[PHASES_ANNOTATION]) is not None:
        try:
            plan = parse_phases(text)
        except ValueError as error:
            problems.append(f"{PHASES_ANNOTATION}: {error}")
    for key in (GPU_UTIL_ANNOTATION, SIMULATED_UTILIZATION_ANNOTATION):
        if plan is None and (text := said[key]) is not None:
            try:
                low, high = sorted(parse_span(text))
                plan = constant((low + high) / 2, OTHER_PHASE[1], (high - low) / 2)
            except ValueError as error:
                problems.append(f"{key}: {error}")
    for key, parse in ((GPU_MEMORY_ANNOTATION, parse_memory), (SIMULATED_FRACTION_ANNOTATION, _fraction)):
        if memory is None and (text := said[key]) is not None:
            try:
                memory = parse(text)
            except ValueError as error:
                problems.append(f"{key}: {error}")
    plan = plan or DEFAULT_PLAN
    return plan if memory is None else _with_memory(plan, memory), tuple(problems)


def _fraction(text: str) -> Memory:
    """fake-gpu-operator's part of a GPU: `0.5` is half of its memory."""
    wanted = text.strip()
    try:
        fraction = float(wanted)
    except ValueError as error:
        raise ValueError(f"{quoted(text)} is no fraction from 0 to 1") from error
    if not 0 < fraction <= 1:
        raise ValueError(f"{quoted(text)} is no fraction from 0 to 1")
    return Memory(fraction * 100)


def _with_memory(plan: LoadPlan, memory: Memory) -> LoadPlan:
    return replace(plan, phases=tuple(replace(phase, memory=memory) for phase in plan.phases))
