"""What the lock files hold."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release import environment, locks


def pinned(name: str) -> dict[str, Requirement]:
    """Each package of a lock file, as its line says."""
    found = {}
    for entry in environment.entries((locks.FOLDER / name).read_text()):
        requirement = Requirement(entry.splitlines()[0].rstrip("\\ "))
        found[canonicalize_name(requirement.name)] = requirement
    return found
