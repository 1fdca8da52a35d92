"""README's transcript, typed into a shell beside a server of the example: it prints what README shows, but for ids,
ports and ages. `--update-golden` writes README anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from support.plane import COMMAND, Clone, Plane, environment, kubectl_program

TOP = Path(__file__).parents[2]
README = TOP / "README.md"
SECONDS = 60.0
"""How long what is shown may take to be so. README promises less; machines of tests are slow."""

_ROLES = ("AUTHOR", "COMMITTER")
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SERVER = re.compile(r"https://127\.0\.0\.1:\d+")
_VARIES = (
    (re.compile(r"\b[0-9a-f]{7,40}\b"), "<id>"),
    (_SERVER, "<server>"),
    (re.compile(r"\b(?:\d+[smhd])+$"), "<age>"),
    (re.compile(r"(?<=\S) {2,}"), " "),
)


class Typed(NamedTuple):
    command: str
    printed: str


def transcript(readme: str) -> list[Typed]:
    [block] = _BLOCK.findall(readme)
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    return [Typed(command, printed) for command, printed in zip(parts[1::2], parts[2::2], strict=True)]


def settled(printed: str) -> str:
    """What does not vary from one run to the next."""
    lines = [line.rstrip() for line in printed.splitlines()]
    for pattern, name in _VARIES:
        lines = [pattern.sub(name, line) for line in lines]
    return "\n".join(lines)


class Shell:
    """Beside a server, in a clone of what it hosts."""

    def __init__(self, server: Plane, clone: Clone) -> None:
        path = os.pathsep.join([str(COMMAND.parent), str(Path(kubectl_program()).parent), os.environ["PATH"]])
        who = {f"GIT_{role}_{what}": "reader@example.org" for role in _ROLES for what in ("NAME", "EMAIL")}
        self._environment = environment(PATH=path, KUBECONFIG=str(server.kubeconfig), **who)
        self._folder = clone.folder

    def run(self, command: str) -> str:
        """What a terminal would show of it, with README's address."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        lines = [line.rstrip() for line in _SERVER.sub("https://127.0.0.1:6443", done.stdout).splitlines()]
        return "".join(f"{line}\n" for line in lines)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    fleet = shutil.copytree(TOP / "examples" / "fleet-repo", tmp_path / "fleet-repo")
    with Plane(fleet, tmp_path / "server" / "data") as server:
        yield Shell(server, server.clone(tmp_path / "fleet"))


def test_readme_shows_what_is_printed(shell: Shell, eventually: Any, update_golden: bool) -> None:
    readme = README.read_text()
    shown = transcript(readme)
    found = [typed._replace(printed=_printed(shell, typed, eventually)) for typed in shown]
    same = [settled(each.printed) for each in found] == [settled(each.printed) for each in shown]
    if update_golden and not same:
        block = "".join(f"$ {command}\n{printed}" for command, printed in found)
        README.write_text(_BLOCK.sub(lambda _: f"```console\n{block}```", readme))
    else:
        assert same, f"pytest tests/e2e/test_readme.py --update-golden\n{found}"


def _printed(shell: Shell, typed: Typed, eventually: Any) -> str:
    """What the command prints: at once where it changes something, else as soon as it is what README shows."""
    printed = shell.run(typed.command)

    def shown() -> bool:
        nonlocal printed
        if settled(printed) != settled(typed.printed):
            printed = shell.run(typed.command)
        return settled(printed) == settled(typed.printed)

    if "push" not in typed.command and "sed" not in typed.command:
        try:
            eventually(shown, SECONDS)
        except pytest.fail.Exception:
            return printed
    return printed


def test_the_picture_needs_nothing_else_and_says_what_it_shows() -> None:
    """It is shown by forges, which neither run scripts nor fetch what a picture names."""
    [(said, file)] = re.findall(r"!\[([^]]+)\]\((\S+\.svg)\)", README.read_text())
    picture = ElementTree.parse(TOP / file).getroot()
    names = {element.tag.rpartition("}")[2] for element in picture.iter()}
    assert {"title", "desc"} <= names and not names & {"script", "image", "foreignObject", "use"}
    assert not [key for element in picture.iter() for key in element.attrib if key.endswith("href")]
    assert "git push" in said and "prefers-color-scheme: dark" in (TOP / file).read_text()
