"""kubectl's global flags: declared once, accepted after `ghost` and after every subcommand.

The help texts follow k8s.io/cli-runtime's config_flags.go. Flags that people rarely type are accepted everywhere but
shown by `kubectl ghost options` only, as kubectl does it.
"""

from __future__ import annotations

from typing import Any

import click

from kubectl_ghost.conventions.durations import DURATION

_STRING_FLAGS = {
    "--kubeconfig": "Path to the kubeconfig file to use for CLI requests",
    "--context": "The name of the kubeconfig context to use",
    "--cluster": "The name of the kubeconfig cluster to use",
    "--user": "The name of the kubeconfig user to use",
    "--token": "Bearer token for authentication to the API server",
    "--username": "Username for basic authentication to the API server",
    "--password": "Password for basic authentication to the API server",
    "--as": "Username to impersonate for the operation",
    "--as-uid": "UID to impersonate for the operation",
    "--certificate-authority": "Path to a cert file for the certificate authority",
    "--client-certificate": "Path to a client certificate file for TLS",
    "--client-key": "Path to a client key file for TLS",
    "--tls-server-name": "Server name to use for server certificate validation",
    "--cache-dir": "Accepted for kubectl's sake: this tool keeps no discovery cache",
}
_REPEATED_FLAGS = {
    "--as-group": "Group to impersonate for the operation, this flag can be repeated",
    "--as-user-extra": "User extras to impersonate for the operation (key=value), this flag can be repeated",
}
_SWITCHES = {
    "--insecure-skip-tls-verify": "If true, the server's certificate will not be checked for validity",
    "--disable-compression": "If true, opt-out of response compression for all requests to the server",
}
GLOBAL_FLAGS = "kubectl_ghost.global_flags"
"""Key of the collected values in click's context: one dict for the whole invocation, the rightmost flag wins."""


def values(context: click.Context) -> dict[str, Any]:
    """The global flags given so far, by parameter name (`as_user` for --as); flags not given are absent."""
    collected: dict[str, Any] = context.find_root().meta.setdefault(GLOBAL_FLAGS, {})
    return collected


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is None or value == () or value is False:
        return
    name = str(parameter.name)
    if isinstance(value, tuple):
        value = (*values(context).get(name, ()), *value)
    values(context)[name] = value


def _option(*declaration: str, **settings: Any) -> click.Option:
    return click.Option(list(declaration), expose_value=False, callback=_remember, hidden=True, **settings)


def global_options() -> list[click.Option]:
    """Fresh click options for every global flag, hidden from a command's own help."""
    renamed = {"--as": "as_user", "--as-group": "as_groups"}
    options = [_option(flag, *filter(None, [renamed.get(flag)]), help=text) for flag, text in _STRING_FLAGS.items()]
    options += [
        _option(flag, *filter(None, [renamed.get(flag)]), multiple=True, help=text)
        for flag, text in _REPEATED_FLAGS.items()
    ]
    options += [_option(flag, is_flag=True, help=text) for flag, text in _SWITCHES.items()]
    options += [
        _option("-n", "--namespace", help="If present, the namespace scope for this CLI request"),
        _option("-s", "--server", help="The address and port of the Kubernetes API server"),
        _option("-v", "--v", "verbosity", type=click.IntRange(min=0), help="Number for the log level verbosity"),
        _option(
            "--request-timeout",
            type=DURATION,
            help="The length of time to wait before giving up on a single server request (1s, 2m, 3h; 0 for ever)",
        ),
    ]
    return options
