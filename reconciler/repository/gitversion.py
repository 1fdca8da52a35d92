"""Whether the git of this machine is new enough.

Called by commands before they make anything: an older one would fail in the middle, at an option that it does not have.
"""

from __future__ import annotations

import re
import subprocess

from reconciler.repository.errors import RepositoryUnreadable

OLDEST = (2, 31)
"""The first that takes settings from variables (GIT_CONFIG_COUNT), where no list of processes shows them."""
_VERSION = re.compile(r"git version (\d+)\.(\d+)")


def require_git() -> None:
    """Raises RepositoryUnreadable."""
    wanted = ".".join(map(str, OLDEST))
    hint = f"install git {wanted} or later"
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, check=False, timeout=30).stdout
    except FileNotFoundError as error:
        raise RepositoryUnreadable("the git command is not installed", hint) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RepositoryUnreadable(f"the git command cannot be run ({error})", hint) from error
    found = _VERSION.match(said.decode(errors="replace"))
    if found is None:
        raise RepositoryUnreadable("the git command does not say which version it is", hint)
    if tuple(map(int, found.groups())) < OLDEST:
        text = found.group(0).removeprefix("git version ")
        raise RepositoryUnreadable(f"the git command is version {text}, which is too old", hint)
