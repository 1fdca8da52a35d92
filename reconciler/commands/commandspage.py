"""The reference in docs/commands.md, made of the commands: `python -m reconciler.commands.commandspage
docs/commands.md` writes it anew (`make settings`), and a test compares. What stands before it is written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc
from pathlib import Path

import click

_BEGIN, _END = "<!-- made of the commands by `make settings` -->", "<!-- end -->"
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
    """`text` with the reference between the two marks. Raises ValueError without marks."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"there is no {_BEGIN} with {_END} below it")
    return f"{before}{begin}\n\n{''.join(_section(*each) for each in commands)}{end}{after}"


def _section(typed: str, command: click.Command) -> str:
    context = click.Context(command, info_name=typed)
    usage = " ".join([typed, *command.collect_usage_pieces(context)])
    lines = [f"## {typed}", "", "```", usage, "```", "", cleandoc(command.help or ""), ""]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if len(options) > _ELSEWHERE:
        lines += ["Its options are in [settings](settings.md).", ""]
    elif options:
        lines += ["| option | what it does |", "|---|---|", *(_row(each, context) for each in options), ""]
    return "\n".join([*lines, ""])


def _row(option: click.Option, context: click.Context) -> str:
    told = option.get_help_record(context)
    name, said = told if told is not None else (", ".join(option.opts), "")
    return f"| `{_cell(name)}` | {_cell(said)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def main(file: str) -> None:
    at = Path(file)
    # Found as it finds us: what knows all commands stands above all of them.
    commands: click.Group = import_module("reconciler.__main__").main
    at.write_text(page(at.read_text(), walk(commands, "treeplane")))


if __name__ == "__main__":
    main(*sys.argv[1:])
