"""How ssh is run for git: without questions, with deadlines, and only to hosts whose keys are known.

Called by remote.py and origin.py. A host that is not known is refused, and never taken because it was the first to
answer; to say what would have to be added, its key is asked for once more (hostkey.py).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.repository import nameless
from reconciler.repository.command import git


@dataclass(frozen=True, slots=True)
class SshSettings:
    """Seconds: `connect` for the connection, `stall` without a byte after which it is given up. `key`, `known_hosts`:
    files that count instead of those that ssh finds by itself."""

    connect: int
    stall: int
    key: Path | None = None
    known_hosts: Path | None = None

    def command(self) -> list[str]:
        """The program with its options, and what has to come before it."""
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": self.connect,
            "ServerAliveInterval": max(1, self.stall // 3),
            "ServerAliveCountMax": 3,
            "StrictHostKeyChecking": "yes",
        }
        if self.known_hosts is not None:
            options |= {
                "UserKnownHostsFile": _named(self.known_hosts),
                "GlobalKnownHostsFile": os.devnull,
                "UpdateHostKeys": "no",
            }
        if self.key is not None:
            options |= {"IdentityFile": _named(self.key), "IdentitiesOnly": "yes"}
        said = (word for key, value in options.items() for word in ("-o", f"{key}={value}"))
        return [*nameless.words(), "ssh", *said]


def ssh_variables(git_dir: Path, settings: SshSettings) -> Mapping[str, str]:
    """Variables that have git run ssh so; none where the user has said how to run it, and nobody said with which
    files."""
    is_told = settings.key is not None or settings.known_hosts is not None
    if not is_told and is_the_users(git_dir):
        return {}
    return {"GIT_SSH_COMMAND": shlex.join(settings.command())}


def is_the_users(git_dir: Path) -> bool:
    """Whether the user has said how to run ssh."""
    if os.environ.keys() & {"GIT_SSH_COMMAND", "GIT_SSH"}:
        return True
    return bool(git(git_dir, "config", "--get", "core.sshCommand").output.strip())


def _named(file: Path) -> str:
    """As ssh reads the path of a file: in quotes, where % begins what stands for something else."""
    return '"{}"'.format(str(file).replace("%", "%%"))
