"""Where a fleet's status branch is: its name, and its repository where that is not the fleet's own.

Called by layout (treeplane.yaml names it), mirror (which goes there) and whoever looks for it. Pure. The address is the
word of whoever may push treeplane.yaml, and the server goes there with its own credentials, which are git's for that
host: so it names no credentials, no program to run, and nothing on the server's machine unless the fleet's own
repository is there, too.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from apiserver.model.redaction import redact

LONGEST = 1024
OWN = "own"
"""How who runs the server says that it is the fleet's own repository."""
_USER = r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_PATH = r"(?:/[A-Za-z0-9._~+,=:@%-]+)+/?"
"""Nothing that means something to a shell: the address stands in commands that are printed to be typed."""
_FORMS = (
    re.compile(rf"https?://{_HOST}{_PATH}"),
    re.compile(rf"ssh://{_USER}{_HOST}{_PATH}"),
    re.compile(rf"file://{_PATH}"),
    # As ssh has it: user@host:path. A name without a user might be meant for a file.
    re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?:(?!-)[A-Za-z0-9._~/%+-]+"),
)
_NAMED = re.compile(r"https?://[^/]*@|ssh://[^/@]*:[^/]*@")


class StatusAddress(NamedTuple):
    """`repository`: its URL; "" for the fleet's own."""

    branch: str
    repository: str = ""

    def __str__(self) -> str:
        """For people. There is nothing secret in it."""
        return f"{self.branch} of {redact(self.repository)}" if self.repository else self.branch


def fault(repository: str) -> tuple[str, str] | None:
    """Why an address is none for a status branch, and what to do."""
    if _NAMED.match(repository):
        return "holds credentials", "leave them out: the server's git has them from a credential helper or an ssh key"
    if len(repository) > LONGEST or ".." in repository.split("/") or not any(f.fullmatch(repository) for f in _FORMS):
        return "is no address of a repository", "write it like https://git.example.org/shop/status.git"
    return None


def barred(repository: str, source: str) -> str:
    """Why nobody goes to an address that treeplane.yaml of the repository at `source` names; "" where nothing speaks
    against it."""
    scheme = urlsplit(repository).scheme if "://" in repository else "ssh"
    beside = urlsplit(source).scheme if "://" in source else "file" if source.startswith("/") else "ssh"
    if scheme == "file" and beside != "file":
        return "is on the server's machine, where the fleet's own repository is not"
    if scheme == "http" and beside not in ("http", "git", "file"):
        return "is read and written without encryption, as the fleet's own repository is not"
    return ""
