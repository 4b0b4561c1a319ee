"""What a user named on the command line, before any node is looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """Words, or a pool, a label selector or everything; of that, so many GPUs at random."""

    words: tuple[str, ...] = ()
    pool: str | None = None
    selector: str | None = None
    everything: bool = False
    number: int | None = None
    seed: int = 0

    @property
    def names_any(self) -> bool:
        """Whether anything at all has been named."""
        return bool(self.words) or self.pool is not None or self.selector is not None or self.everything
