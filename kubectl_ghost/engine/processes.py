"""The components that run, told by what the kernel says of them rather than by pid files.

kwokctl trusts its pid files: after a reboot it takes whatever has inherited the number for the component, and deleting
the cluster would kill it. And a kwokctl that was killed may have started a component without noting it. So every
command looks first at which processes are the cluster's own, and corrects the pid files by that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from kubectl_ghost.engine.folders import ClusterFolder

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")
"""kwokctl's names, in the order in which they depend on each other."""

_PROC = Path("/proc")
_SECONDS_TO_STOP = 5.0


def running(folder: ClusterFolder) -> dict[str, int]:
    """Component -> pid of those that run. kwokctl starts each as `<cluster folder>/bin/<component>`."""
    return _programs_under(folder.components / "bin")


def repair_pid_files(folder: ClusterFolder) -> None:
    """Make kwokctl's pid files name the cluster's own processes and nothing else."""
    pids = folder.components / "pids"
    if not pids.is_dir():
        return
    alive = running(folder)
    for path in pids.glob("*.pid"):
        if path.stem not in alive:
            path.unlink()
    for component, pid in alive.items():
        (pids / f"{component}.pid").write_text(str(pid), encoding="utf-8")


def noted(folder: ClusterFolder) -> set[str]:
    """The components that kwokctl has noted as started, whether they still run or not."""
    return {path.stem for path in (folder.components / "pids").glob("*.pid")}


def stop(folder: ClusterFolder) -> None:
    """End every process of the cluster and wait until they are gone."""
    # A kwokctl that has outlived the command that called it would go on starting components.
    _signal(folder.root, [folder.kwokctl.name], signal.SIGKILL)
    # Those that depend on others first, or they would fill their logs with complaints.
    stop_components(folder, sorted(running(folder), key=_dependence, reverse=True))


def stop_components(folder: ClusterFolder, names: Collection[str]) -> None:
    """End some components, wait until they are gone and let kwokctl know."""
    programs = folder.components / "bin"
    _signal(programs, names, signal.SIGTERM)
    deadline = time.monotonic() + _SECONDS_TO_STOP
    while remaining := running(folder).keys() & names:
        if time.monotonic() > deadline:
            _signal(programs, remaining, signal.SIGKILL)
        time.sleep(0.02)
    repair_pid_files(folder)


def _dependence(component: str) -> int:
    return COMPONENTS.index(component) if component in COMPONENTS else len(COMPONENTS)


def _signal(parent: Path, names: Iterable[str], number: signal.Signals) -> None:
    for name in names:
        # Looked up now and not earlier: a pid that has ended may be somebody else's by the time it is signalled.
        pid = _programs_under(parent).get(name)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _programs_under(parent: Path) -> dict[str, int]:
    """File name -> pid of the processes whose program lies in that folder."""
    return {Path(program).name: pid for pid, program in _programs() if os.path.dirname(program) == str(parent)}


def _programs() -> Iterator[tuple[int, str]]:
    """Pid and first argument of every process; a zombie has none and is left out."""
    if not _PROC.is_dir():
        yield from _programs_by_ps()
        return
    for entry in os.listdir(_PROC):
        if not entry.isdigit():
            continue
        try:
            command = (_PROC / entry / "cmdline").read_bytes()
        except OSError:
            continue
        if command:
            yield int(entry), os.fsdecode(command.split(b"\0", 1)[0])


def _programs_by_ps() -> Iterator[tuple[int, str]]:
    """Where there is no /proc (macOS). Component folders of ours hold no spaces unless the home does."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        pid, _, command = line.strip().partition(" ")
        yield int(pid), command.partition(" --")[0]
