"""click's commands and groups, taught kubectl's manners.

Groups load a subcommand's module only when it is called: their help comes from a static table, since importing every
command to print one line of each would cost more than all the rest of the start.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any, NoReturn

import click

from kubectl_ghost.conventions.global_flags import global_options

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_BARE = {"--dry-run": "unspecified", "--wait": "true"}
"""Flags whose value may be left out, with what the flag alone means: they never take the next word."""
_BOOLEANS = {"true": True, "false": False}
_SHORT_FLAG_WITH_EQUALS = re.compile(r"(-[A-Za-z])=(.*)", re.DOTALL)

CommandTable = Mapping[str, tuple[str, str, str]]
"""Command name -> (heading in the help, module that defines `command`, one line of help)."""


def normalised(arguments: list[str], switches: Collection[str] = ()) -> list[str]:
    """kubectl's spellings that click does not know.

    `-o=json` is `-o json`, a bare `--dry-run` takes no value, and a switch can be given one: `--no-headers=true`.

    Args:
        switches: the flags that are on or off.
    """
    result: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return result + arguments[position:]
        short = _SHORT_FLAG_WITH_EQUALS.fullmatch(argument)
        flag, _, value = argument.partition("=")
        if short:
            result += short.groups()
        elif flag in switches and value in _BOOLEANS:
            result += [flag] * _BOOLEANS[value]
        elif argument in _BARE:
            result.append(f"{argument}={_BARE[argument]}")
        else:
            result.append(argument)
    return result


def _switches(command: click.Command) -> set[str]:
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return {flag for option in options if option.is_flag for flag in option.opts}


class GhostCommand(click.Command):
    """A leaf command: takes every global flag beside its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", {**_CONTEXT})
        super().__init__(*args, **kwargs)
        own = {flag for parameter in self.params for flag in parameter.opts}
        self.params += [option for option in global_options() if not own.intersection(option.opts)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse after bringing kubectl's spellings into click's."""
        return super().parse_args(ctx, normalised(args, _switches(self)))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """kubectl's pointer to the flags that every command takes."""
        super().format_epilog(ctx, formatter)
        with formatter.section("Global flags"):
            formatter.write_text('Use "kubectl ghost options" for a list of global command-line options.')


class GhostGroup(click.Group):
    """A group whose subcommands are named in a table and imported when called."""

    def __init__(self, *args: Any, table: CommandTable, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", {**_CONTEXT})
        super().__init__(*args, **kwargs)
        self.table = table
        self.params += global_options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse after bringing kubectl's spellings into click's; no subcommand at all means help, as in kubectl."""
        if not args:
            click.echo(ctx.get_help())
            ctx.exit(0)
        return super().parse_args(ctx, normalised(args, _switches(self)))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name in the table, in its order."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of that name and take its `command`."""
        if cmd_name not in self.table:
            return None
        command: click.Command = importlib.import_module(self.table[cmd_name][1]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """kubectl's words for an unknown command, with the nearest names."""
        if args and args[0] not in self.table:
            self._unknown(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _unknown(self, ctx: click.Context, name: str) -> NoReturn:
        nearest = difflib.get_close_matches(name, self.table, n=3, cutoff=0.5)
        suggestion = "".join(f"\n\t{candidate}" for candidate in nearest)
        message = f'unknown command "{name}" for "{ctx.command_path}"'
        if suggestion:
            message += f"\n\nDid you mean this?{suggestion}\n"
        raise click.UsageError(message, ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, under its headings, without importing anything."""
        sections: MutableMapping[str, list[tuple[str, str]]] = {}
        for name, (heading, _, text) in self.table.items():
            sections.setdefault(heading, []).append((name, text))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """How to go on, in kubectl's words."""
        super().format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write(f'Use "{ctx.command_path} <command> --help" for more information about a given command.\n')
        formatter.write('Use "kubectl ghost options" for a list of global command-line options.\n')
