"""`treeplane init [DIR]`: a small fleet to begin with, from the templates of the layout's specification, and the lines
to type next.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from reconciler.commands.again import typed
from reconciler.commands.failure import Failure
from reconciler.repository.folder import unfit

_BRANCH = "main"
"""The one that `treeplane up` serves if nothing else is said."""
_IGNORED = ".treeplane/"


@dataclass(frozen=True, slots=True)
class Initialized:
    """`made`: each file with what was done to it. `steps`: what to type in this terminal, `then` in a second one."""

    made: tuple[tuple[Path, str], ...]
    steps: tuple[str, ...]
    then: tuple[str, ...]

    def lines(self) -> list[str]:
        said = [f"{path} {done}" for path, done in self.made]
        said += ["", "next:", *(f"  {step}" for step in self.steps)]
        return [*said, "and in a second terminal, in the same directory:", *(f"  {step}" for step in self.then)]

    def data(self) -> dict[str, object]:
        made = [{"path": str(path), "change": done} for path, done in self.made]
        return {"files": made, "next": [*self.steps], "then": [*self.then]}


def initialize(directory: Path) -> Initialized:
    """Write the templates into `directory`; a file that is there is left alone. Raises Failure."""
    made: list[tuple[Path, str]] = []
    with as_file(files("repo_layout") / "templates") as templates:
        if not templates.is_dir():
            raise Failure("the templates are missing from this installation", "install treeplane again")
        for template in sorted(p for p in templates.rglob("*") if p.is_file()):
            target = directory / template.relative_to(templates)
            made.append((target, _written(target, template.read_bytes())))
    then = then_steps("root:team", "kubectl get deployments --namespace web")
    return Initialized(tuple(made), next_steps(directory), then)


def then_steps(workspace: str, look: str) -> tuple[str, ...]:
    """What to type while the fleet is served, to `look` into a workspace."""
    return "export KUBECONFIG=.treeplane/admin.kubeconfig", f"{_program()} ws {workspace}", look


def _program() -> str:
    return shlex.quote(typed(sys.argv[:1])[0])


def _written(target: Path, content: bytes) -> str:
    if target.exists() or target.is_symlink():
        return "unchanged"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    except OSError as error:
        raise Failure(f"{target}: {error.strerror}", "make room for it, or name another directory") from error
    return "created"


def next_steps(directory: Path) -> tuple[str, ...]:
    """What has a fleet's files served. git first, if there is no repository yet; what is in it already is committed by
    its owner's words."""
    top, folder = _around(directory)
    here = top if folder else directory
    steps = [] if here.resolve() == Path.cwd() else [f"cd {shlex.quote(str(here))}"]
    branch = _git(directory, "symbolic-ref", "--short", "HEAD")
    if not branch:
        steps.append(f"git init --initial-branch {_BRANCH}")
    ignore = here / ".gitignore"
    said = ignore.read_text(errors="replace").split() if ignore.is_file() else []
    if (ignore.is_file() or folder) and _IGNORED not in said:
        steps.append(f"echo {_IGNORED} >> .gitignore")
    steps += [f"git add {shlex.quote(folder)} .gitignore" if folder else "git add ."]
    steps.append("git commit -m 'A fleet to begin with'")
    other = f" --branch {shlex.quote(branch)}" if branch not in ("", _BRANCH) else ""
    inside = f" --path {shlex.quote(folder)}" if folder else ""
    return (*steps, f"{_program()} up .{inside}{other}")


def _around(directory: Path) -> tuple[Path, str]:
    """The top of the work tree that a directory is in, and its path from there, "" where it is the top or in none."""
    said = _git(directory, "rev-parse", "--show-toplevel")
    top, here = Path(said) if said else directory, directory.resolve()
    if top.resolve() == here or not here.is_relative_to(top.resolve()):
        return directory, ""
    folder = here.relative_to(top.resolve()).as_posix()
    return top, "" if unfit(folder) else folder


def _git(directory: Path, *words: str) -> str:
    """What git says there; "" where it is in no repository, or there is no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *words], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
