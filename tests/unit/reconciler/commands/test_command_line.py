"""The command line as a whole: every command is there, and none waits for what only others need."""

from __future__ import annotations

import logging
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from reconciler.__main__ import main

_LOOKS = """
import sys
from reconciler.__main__ import main
try:
    main(sys.argv[1:])
finally:
    print(sorted({"pygit2", "lmdb", "starlette", "jsonschema", "cryptography"} & {*sys.modules}), file=sys.stderr)
"""


def names() -> list[str]:
    return main.list_commands(click.Context(main))


@pytest.mark.parametrize("name", names())
def test_each_command_is_there_under_its_name(name: str) -> None:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    assert found.name == name
    done = CliRunner().invoke(main, [name, "--help"])
    assert done.exit_code == 0, done.output


def test_all_are_listed_but_what_only_treeplane_starts() -> None:
    listed = CliRunner().invoke(main, ["--help"]).output
    assert all(f"  {name} " in listed for name in names() if name != "reconcile")
    assert "  reconcile " not in listed
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2


@pytest.mark.parametrize("words", [["--version"], ["ws", "--help"], ["comment", "--help"], ["bind", "--help"]])
def test_a_short_command_loads_nothing_heavy(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", _LOOKS, *words], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_what_a_command_is_warned_of_is_a_line_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    nobodys = logging.Logger("reconciler.loading")

    @click.command("warned")
    def warned() -> None:
        nobodys.info("not shown")
        nobodys.warning("of a tenant's %s", "\x1b[2Jfile")

    monkeypatch.setattr(logging, "lastResort", logging.lastResort)
    monkeypatch.setitem(main.commands, "warned", warned)
    done = CliRunner().invoke(main, ["warned"])
    line = r"\S+Z warning treeplane reconciler\.loading: of a tenant's \\x1b\[2Jfile\n"
    assert re.fullmatch(line, done.stderr), done.stderr
    assert done.stdout == ""
