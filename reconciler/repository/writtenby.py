"""Who wrote which object, in the message of a commit that Treeplane made of several users' writes.

Such a commit has no one author, so a trailer says it for each write, `Written-By: <workspace> <resource> <name> <user>`
(of a namespaced object, `<namespace>/<name>`). Written by the committer; read by whoever tells of history. Anybody can
write such a line: it counts in a commit that is known to be the server's own, and nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.repository.messages import one_line

WRITTEN_BY = "Written-By"
_USER = 400
"""Characters of a user's name. Those of ServiceAccounts have up to 339."""


class WrittenBy(NamedTuple):
    """`workspace`: its path. `resource`: with its group, like `deployments.apps`. `namespace`: "" where none is."""

    workspace: str
    resource: str
    namespace: str
    name: str
    user: str

    def __str__(self) -> str:
        """The trailer's value. A name is a stranger's text: neither it nor the user's reads as another part."""
        name = f"{_word(self.namespace)}/{_word(self.name)}" if self.namespace else _word(self.name)
        return f"{self.workspace} {self.resource} {name} {one_line(self.user, _USER) or '?'}"


def written_by(message: str) -> list[WrittenBy]:
    """What a commit's last paragraph says, in its order. Lines that say nothing of the kind are passed over."""
    last = message.rstrip().rpartition("\n\n")[2]
    lines = (line.removeprefix(f"{WRITTEN_BY}: ") for line in last.splitlines() if line.startswith(f"{WRITTEN_BY}: "))
    return [found for found in map(_parsed, lines) if found is not None]


def _parsed(value: str) -> WrittenBy | None:
    parts = value.split(" ", 3)
    if len(parts) != 4 or not all(parts):
        return None
    workspace, resource, name, user = parts
    namespace, _, base = name.rpartition("/")
    return WrittenBy(workspace, resource, namespace, base, user)


def _word(name: str) -> str:
    """Names of RBAC's kinds may hold blanks, never a slash."""
    return one_line(name).replace(" ", "%20")
