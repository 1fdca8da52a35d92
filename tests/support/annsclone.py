"""A fleet's clone in which ann works, for commands that write files and commit them by their user's git."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(top: Path, *arguments: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", "-C", str(top), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def begin(top: Path, files: dict[str, str]) -> Path:
    """A repository with one commit of these files."""
    top.mkdir()
    git(top, "init", "--quiet", "--initial-branch=main")
    git(top, "config", "user.name", "ann")
    git(top, "config", "user.email", "ann@example.io")
    commit(top, files)
    return top


def commit(top: Path, files: dict[str, str]) -> None:
    """These files, and whatever else is in the work tree."""
    for path, text in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "-mx")
