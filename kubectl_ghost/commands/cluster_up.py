"""`kubectl ghost cluster up`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from kubectl_ghost.commands.cluster_options import BIN_DIR, NAME, VERSION, tell
from kubectl_ghost.conventions.command import GhostCommand
from kubectl_ghost.conventions.durations import DURATION
from kubectl_ghost.domain.errors import InputError

_FEATURE_GATE = re.compile(r"\w+=(true|false)")


@click.command(cls=GhostCommand, name="up")
@NAME
@VERSION
@BIN_DIR
@click.option("--runtime", metavar="RUNTIME", help="kwokctl's runtime; by default binary, plain processes")
@click.option("--feature-gates", metavar="NAME=BOOL,...", help="Feature gates for every component of Kubernetes")
@click.option("--disable-qps-limits", is_flag=True, help="Lift the limits on requests, for measurements")
@click.option("--audit-policy", metavar="FILE", help="Audit policy; the log is audit.log beside the components' logs")
@click.option("--merge-kubeconfig", is_flag=True, help="Merge the context into your kubeconfig and make it current")
@click.option("--timeout", type=DURATION, default="120s", show_default=True, help="How long to wait until ready")
def command(
    *,
    name: str,
    version: str | None,
    bin_dir: str | None,
    runtime: str | None,
    feature_gates: str | None,
    disable_qps_limits: bool,
    audit_policy: str | None,
    merge_kubeconfig: bool,
    timeout: float,
) -> None:
    """Create a cluster, or start it again, and print how to use it.

    \b
    Examples:
      # A cluster for this shell
      eval "$(kubectl ghost cluster up)"

    Run again it changes nothing; after a reboot, or when it was interrupted, it brings the cluster up again.
    """
    from kubectl_ghost.engine.binaries import chosen_bin_dir
    from kubectl_ghost.engine.folders import Folders
    from kubectl_ghost.engine.up import Request, up

    request = Request(
        name=name,
        version=version,
        runtime=runtime,
        feature_gates=_normal_gates(feature_gates),
        disable_qps_limits=disable_qps_limits,
        audit_policy=_text_of(audit_policy),
        bin_dir=chosen_bin_dir(bin_dir),
        merge_kubeconfig=merge_kubeconfig,
        timeout=timeout,
    )
    cluster, outcome = up(request, Folders.of_user(), tell)
    tell(f'cluster "{name}" {outcome}')
    click.echo(f"export KUBECONFIG={shlex.quote(str(cluster.folder.kubeconfig))}")
    click.echo(f"export PATH={shlex.quote(cluster.record.bin_dir)}:$PATH")


def _normal_gates(text: str | None) -> str | None:
    """The gates in one order, so that writing them in another is no other setting."""
    if text is None:
        return None
    gates = sorted(gate.strip() for gate in text.split(",") if gate.strip())
    for gate in gates:
        if not _FEATURE_GATE.fullmatch(gate):
            raise InputError(f"invalid feature gate {gate!r}", "write Name=true or Name=false, separated by commas")
    return ",".join(gates)


def _text_of(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the audit policy {path}: {error}") from error
