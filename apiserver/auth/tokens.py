"""Static tokens in kube-apiserver's format: a CSV line `token,user,uid,"group1,group2"`, the groups optional.

Called by authn.py. The file is looked at before each use, so that a token taken out of it stops working at once and a
new one works without a restart.
"""

from __future__ import annotations

import csv
import hashlib
import logging
from pathlib import Path

from apiserver.auth.files import stamp
from apiserver.auth.user import User
from apiserver.auth.workspaces import is_workspaces

log = logging.getLogger(__name__)


class TokenFile:
    """The tokens of one file. A file that became unreadable keeps the tokens it had, and the log says why."""

    def __init__(self, path: Path) -> None:
        """Raises OSError and ValueError (with file and line)."""
        self._path = path
        self._stamp = stamp(path)
        self._users = _read(path)

    def user(self, token: str) -> User | None:
        self._refresh()
        return self._users.get(_digest(token))

    def _refresh(self) -> None:
        found = stamp(self._path)
        if found == self._stamp:
            return
        self._stamp = found
        try:
            self._users = _read(self._path)
        except (OSError, ValueError) as error:
            log.error("the token file is not read again, its earlier tokens stay: %s", error)


def _digest(token: str) -> bytes:
    # Tokens are found by digest: how long a look-up takes then tells nothing about the token.
    return hashlib.sha256(token.encode()).digest()


def _read(path: Path) -> dict[bytes, User]:
    users: dict[bytes, User] = {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file, skipinitialspace=True)
        for row in rows:
            if not row:
                continue
            if len(row) < 3 or not row[0].strip() or not row[1].strip():
                raise ValueError(f'{path}:{rows.line_num}: expected token,user,uid and optionally "group1,group2"')
            token, name, uid = (field.strip() for field in row[:3])
            groups = tuple(g.strip() for g in (row[3] if len(row) > 3 else "").split(",") if g.strip())
            taken = next(filter(is_workspaces, (name, *groups)), "")
            if taken:
                raise ValueError(f"{path}:{rows.line_num}: {taken} is a workspace's name, which no token may carry")
            users[_digest(token)] = User(name, groups, uid)
    return users
