"""A workspace as a user: under which name and groups the RBAC of another workspace admits it.

A workspace asks inside the server alone (reconciler/controllers/uses.py: may it use that Location?). Nobody else bears
such a name: authn.py, tokens.py, impersonation.py and signers.py refuse credentials that carry one.
"""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.auth.user import User
from apiserver.model import paths

USER_PREFIX = "system:workspace:"
"""A workspace's user name is this and its path."""
EVERY = "system:workspaces"
"""The group of all workspaces."""
BELOW_PREFIX = f"{EVERY}:"
"""The group of the workspaces below a workspace is this and its path."""


def as_user(path: str) -> User:
    """root:shop:web is User `system:workspace:root:shop:web`, in the groups `system:workspaces`,
    `system:workspaces:root` and `system:workspaces:root:shop`. It is in no group of its own path: as that of a
    namespace is the group of the ServiceAccounts in it, that of a workspace is the group of what stands below it."""
    above = []
    parent = paths.parent(path)
    while parent is not None:
        above.append(f"{BELOW_PREFIX}{parent}")
        parent = paths.parent(parent)
    return User(f"{USER_PREFIX}{path}", (EVERY, *reversed(above)))


def is_workspaces(name: str) -> bool:
    """Whether a user or group of this name can be nothing but a workspace, or several."""
    return name == EVERY or name.startswith((USER_PREFIX, BELOW_PREFIX))


def passes_for_workspace(name: str, groups: Iterable[str]) -> bool:
    """Whether credentials with these names would be taken for a workspace's."""
    return is_workspaces(name) or any(map(is_workspaces, groups))
