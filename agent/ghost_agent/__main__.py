"""The agent as a program in a pod: `python agent.pyz --port 9400`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from ghost_agent.agent import Agent
from ghost_agent.in_cluster import ACCOUNT, InCluster
from ghost_agent.options import COMPATIBILITY, PORT, agent_options
from kubectl_ghost.domain.errors import GhostError


def main() -> int:
    """Serve until SIGTERM."""
    given = _parser().parse_args()
    try:
        options = agent_options(
            fields=given.fields,
            counters=given.counters.read_text(encoding="utf-8") if given.counters else None,
            compat=given.compat,
            jitter=given.jitter,
            seed=given.seed,
            time_scale=given.time_scale,
            shard=given.shard,
            read_only=given.read_only,
        )
        agent = Agent(InCluster(given.account), options, address=given.address, port=given.port, problem=_tell)
    except GhostError as error:
        _tell(f"error: {error.message}" + (f"\n{error.hint}" if error.hint else ""))
        return 1

    def end(_signal: int, _frame: FrameType | None) -> None:
        threading.Thread(target=agent.stop).start()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    agent.start()
    _tell(f"serving on port {agent.server.port}")
    agent.serve()
    return 0


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("ghost-agent", description="Serve the DCGM metrics of simulated GPU nodes")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--address", default="")
    parser.add_argument("--fields", default="default", help="groups and names of fields, comma separated")
    parser.add_argument("--counters", type=Path, help="a dcgm-exporter CSV file, in the place of --fields")
    parser.add_argument("--compat", action="append", default=[], help=f"any of {', '.join(COMPATIBILITY)}")
    parser.add_argument("--jitter", type=float, default=0.0, help="percent")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-scale", type=float, default=1.0)
    parser.add_argument("--shard", default="", help="2/4: the second of four agents")
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument(
        "--account", type=Path, default=ACCOUNT, help="the folder of the service account's token and CA"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
