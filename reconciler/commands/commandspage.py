"""The reference in docs/commands.md, made of the commands: `python -m reconciler.commands.commandspage
docs/commands.md` writes it anew (`make settings`), and a test compares. What stands before it is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc

import click

from reconciler.commands import madepage

_ELSEWHERE = 20
"""A command with more options than this has a page for them: settings.md."""

Walked = tuple[str, click.Command]


def walk(group: click.Group, program: str) -> Iterator[Walked]:
    """All commands with what is typed for each, groups before theirs; none that is hidden."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if command is None or command.hidden:
            continue
        yield f"{program} {name}", command
        if isinstance(command, click.Group):
            yield from walk(command, f"{program} {name}")


def page(text: str, commands: Iterator[Walked]) -> str:
    """`text` with the reference between its marks."""
    return madepage.between(text, "commands", (_section(*each) for each in commands))


def _section(typed: str, command: click.Command) -> str:
    context = click.Context(command, info_name=typed)
    usage = " ".join([typed, *command.collect_usage_pieces(context)])
    lines = [f"## {typed}", "", "```", usage, "```", "", cleandoc(command.help or ""), ""]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if len(options) > _ELSEWHERE:
        lines += ["Its options are in [settings](settings.md).", ""]
    elif options:
        lines += [*madepage.table(("option", "what it does"), (_row(each, context) for each in options)), ""]
    return "\n".join([*lines, ""])


def _row(option: click.Option, context: click.Context) -> tuple[str, str]:
    told = option.get_help_record(context)
    name, said = told if told is not None else (", ".join(option.opts), "")
    return f"`{name}`", said


if __name__ == "__main__":
    # Found as it finds us: what knows all commands stands above all of them.
    madepage.write(lambda text: page(text, walk(import_module("reconciler.__main__").main, "treeplane")))
