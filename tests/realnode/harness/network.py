"""What of the machine's network the node needs, and putting it back."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

from tests.realnode.harness import packages
from tests.realnode.harness.places import (
    API_SERVICE_ADDRESS,
    BRIDGE,
    NODE_ADDRESS,
    POD_RANGE,
    ROOT,
    SERVICE_RANGE,
)

_COMMENT = "kubectl-ghost-realnode"
_SYSCTLS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
"""kubelet sets the first three, CNI's bridge plugin the last."""
_BEFORE = ROOT.with_suffix(".sysctls")
"""Their values before; beside the root, since they must outlive it until they are put back."""


def add_bridge() -> None:
    """The bridge that pods hang on. Its address is the node's, and Services' addresses lead nowhere else."""
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    _run("ip", "address", "add", f"{NODE_ADDRESS}/{POD_RANGE.partition('/')[2]}", "dev", BRIDGE)
    _run("ip", "link", "set", BRIDGE, "up")
    _run("ip", "route", "add", SERVICE_RANGE, "dev", BRIDGE)


def add_rules(api_port: int) -> None:
    """The one rule of kube-proxy's that in-cluster clients need, and none of a pod's packets leave the machine."""
    to_api_server = ["-d", API_SERVICE_ADDRESS, "-p", "tcp", "--dport", "443"]
    to_api_server += ["-j", "DNAT", "--to-destination", f"{NODE_ADDRESS}:{api_port}"]
    for chain in ("PREROUTING", "OUTPUT"):
        _rule("nat", chain, *to_api_server)
    _rule("filter", "FORWARD", "-s", POD_RANGE, "!", "-d", POD_RANGE, "-j", "REJECT")


def remember_sysctls() -> None:
    """Note the settings that a node changes, unless a killed run has left its notes."""
    if not _BEFORE.exists():
        _BEFORE.write_text(json.dumps({name: _sysctl(name).read_text() for name in _SYSCTLS if _sysctl(name).exists()}))


def restore() -> None:
    """Take away the bridge and the rules, and put the settings back; whatever of it is not there is well."""
    for table in ("nat", "filter"):
        for line in _run("iptables", "-t", table, "-S").splitlines():
            if line.startswith("-A") and _COMMENT in line:
                _run("iptables", "-t", table, "-D", *shlex.split(line)[1:])
    if Path("/sys/class/net", BRIDGE).exists():
        _run("ip", "link", "delete", BRIDGE)
    if _BEFORE.exists():
        for name, value in json.loads(_BEFORE.read_text()).items():
            if _sysctl(name).read_text() != value:
                _sysctl(name).write_text(value)
        _BEFORE.unlink()


def _rule(table: str, chain: str, *match: str) -> None:
    _run("iptables", "-t", table, "-A", chain, *match, "-m", "comment", "--comment", _COMMENT)


def _sysctl(name: str) -> Path:
    return Path("/proc/sys", name)


def _run(*command: str) -> str:
    environment = {**os.environ, "PATH": packages.search_path()}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
