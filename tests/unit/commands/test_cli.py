"""The command line as a whole: it answers at once, knows every flag everywhere, and fails in kubectl's words."""

import subprocess
import sys

import click
import pytest

from kubectl_ghost import cli
from kubectl_ghost.conventions.command import GhostGroup
from kubectl_ghost.conventions.exit_codes import ExitCode
from kubectl_ghost.conventions.global_flags import global_options

NO_CLUSTER = ["--kubeconfig", "/dev/null", "--server", "https://127.0.0.1:1"]
HEAVY = {
    *("kubernetes", "yaml", "rich", "urllib3", "requests", "ssl", "json", "importlib.metadata", "concurrent.futures"),
    *("prometheus_client", "ghost_agent"),
}


def every_command():
    def walk(group, path):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            yield [*path, name], command, group.table[name][2]
            if isinstance(command, GhostGroup):
                yield from walk(command, [*path, name])

    return list(walk(cli.root, []))


COMMANDS = every_command()


def run(capfd, *arguments):
    code = cli.run(list(arguments))
    out, err = capfd.readouterr()
    return code, out, err


def test_the_command_line_loads_nothing_heavy():
    script = (
        "import sys\nfrom kubectl_ghost.cli import run\nassert run(['--help']) == 0\nprint('\\n'.join(sys.modules))"
    )
    loaded = set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not HEAVY & loaded
    assert not [name for name in loaded if name.startswith("kubectl_ghost.commands.")]


@pytest.mark.parametrize(
    ("path", "command", "summary"), COMMANDS, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_every_help_loads(path, command, summary, capfd):
    code, out, err = run(capfd, *path, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: kubectl ghost {' '.join(path)}")
    assert summary
    assert summary[0].isupper()
    assert not summary.endswith(".")


@pytest.mark.parametrize(
    ("path", "command", "summary"), COMMANDS, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_every_command_takes_every_global_flag(path, command, summary):
    taken = {flag for parameter in command.params for flag in parameter.opts}
    for option in global_options():
        assert set(option.opts) <= taken


@pytest.mark.parametrize(
    "flag", ["--as=x", "--token=x", "--cluster=nope", "--user=nope", "-v=0", "--request-timeout=1s"]
)
def test_global_flags_are_taken_before_and_after_the_command(flag, capfd):
    for arguments in ([flag, *NO_CLUSTER, "get", "nodes"], ["get", "nodes", *NO_CLUSTER, flag]):
        code, _, err = run(capfd, *arguments)
        assert code == ExitCode.ERROR
        assert "No such option" not in err


def test_no_argument_is_help(capfd):
    code, out, _ = run(capfd)
    assert code == ExitCode.OK
    assert "add-pool" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ad-pool"], 'unknown command "ad-pool" for "kubectl ghost"'),
        (["add-pool", "--cuont", "3"], "--count"),
        (["add-pool", "--count", "many"], "'many' is not a valid integer"),
        (["add-pool", "a", "b"], "unexpected extra argument"),
        (["add-pool", "--advertise", "cdi"], "'cdi' is not one of"),
        (["add-pool", "--dry-run=maybe"], 'Must be "none", "server", or "client"'),
        (["add-pool", "--timeout=soon"], "invalid duration"),
        (["get"], "Missing argument"),
        (["get", "pods"], 'resource type "pods"'),
        (["get", "nodes", "a", "-l", "b=c"], "name cannot be provided when a selector is specified"),
        (["delete-pool"], "name the pools to delete, or pass --all"),
        (["delete-pool", "a", "--all"], "not both"),
        (["scale-pool", "a"], "give the number of nodes once"),
        (["status", "-o", "wide"], "use json or yaml"),
    ],
)
def test_what_is_not_understood_is_a_usage_error(arguments, words, capfd):
    code, out, err = run(capfd, *arguments)
    assert (code, out) == (ExitCode.USAGE, "")
    assert err.startswith("error: ")
    assert words in err
    assert "--help" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add-pool", "--gpu", "voodoo"], 'unknown GPU model "voodoo"'),
        (["add-pool", "--count", "0"], "invalid --count 0"),
        (["add-pool", "Bad_Name"], 'invalid pool name "Bad_Name"'),
        (["add-pool", "--memory", "80"], "80 bytes"),
        (["add-pool", "--labels", "a"], 'invalid label "a"'),
        (["add-pool", "--taints", "a=b"], 'invalid taint "a=b"'),
        (["add-pool", "-o", "wide"], "unable to match a printer"),
        (["get", "nodes", "-o", "go-template={{.}}"], "go templates need kubectl itself"),
        (["scale-pool", "node", "0"], "a pool lives on its nodes"),
    ],
)
def test_bad_input_is_told_before_the_cluster_is_asked(arguments, words, capfd):
    code, out, err = run(capfd, *arguments, *NO_CLUSTER)
    assert (code, out) == (ExitCode.ERROR, "")
    assert words in err


def test_an_unreachable_cluster(capfd):
    code, out, err = run(capfd, "get", "nodes", *NO_CLUSTER)
    assert (code, out) == (ExitCode.ERROR, "")
    assert err.startswith(
        "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?"
    )


def test_ctrl_c_is_130(capfd, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.root, "main", interrupted)
    code, _, err = run(capfd, "add-pool")
    assert code == ExitCode.INTERRUPTED == 130
    assert "running the same command again" in err


def test_version(capfd):
    code, out, _ = run(capfd, "version", "--client")
    assert code == 0
    assert out.startswith("Client Version: v")


@pytest.mark.parametrize("arguments", ["--help", "options", "version --client"])
def test_a_closed_or_full_output_is_no_traceback(arguments):
    command = f"{sys.executable} -m kubectl_ghost {arguments}"
    closed = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")
    full = subprocess.run(["sh", "-c", f"{command} >/dev/full"], capture_output=True, text=True, check=False)
    assert (full.returncode, full.stderr) == (1, "error: No space left on device\n")


def test_looking_at_a_fleet_to_which_nothing_has_happened_loads_no_catalogue_of_faults_or_mig():
    code = (
        "import sys, kubectl_ghost.operations.inventory, kubectl_ghost.operations.views\n"
        "heavy = ('reactions', 'faults', 'mig', 'splitting')\n"
        "print(*(name for name in heavy if f'kubectl_ghost.domain.{name}' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
