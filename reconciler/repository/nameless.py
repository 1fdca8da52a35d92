"""A user whose number has no name on the machine, as some clusters choose one for each namespace: ssh does not run so.

Called by ssh.py. nss_wrapper, which the image has, shows ssh a list of users with one more in it. It is a library that
is put before the others of a program, so it is given to ssh alone.
"""

from __future__ import annotations

import atexit
import os
import pwd
import tempfile
from functools import cache
from pathlib import Path

_LIBRARIES = ("usr/lib/*-linux-gnu/libnss_wrapper.so", "usr/lib64/libnss_wrapper.so", "usr/lib/libnss_wrapper.so")
"""Where Debian, Fedora and the others have it."""


def words(root: Path = Path("/")) -> list[str]:
    """What comes before `ssh` on its command line: nothing for a user with a name, nor where there is no nss_wrapper,
    so that ssh says itself what it lacks. `root`: where the machine's libraries and users are."""
    number = os.geteuid()
    library = None if _has_a_name(number) else _library(root)
    if library is None:
        return []
    users, groups = root / "etc/passwd", root / "etc/group"
    return ["env", f"LD_PRELOAD={library}", f"NSS_WRAPPER_PASSWD={_with(number, users)}", f"NSS_WRAPPER_GROUP={groups}"]


def _has_a_name(number: int) -> bool:
    try:
        return bool(pwd.getpwuid(number))
    except KeyError:
        return False


def _library(root: Path) -> Path | None:
    return next((path for pattern in _LIBRARIES for path in sorted(root.glob(pattern))), None)


@cache
def _with(number: int, users: Path) -> Path:
    """A list of those users and this one, for as long as this process lives."""
    handle, name = tempfile.mkstemp(prefix="treeplane-passwd-")
    atexit.register(Path(name).unlink, missing_ok=True)
    home = os.environ.get("HOME") or tempfile.gettempdir()
    with os.fdopen(handle, "w") as file:
        file.write(f"{users.read_text()}treeplane:x:{number}:{os.getegid()}::{home}:/usr/sbin/nologin\n")
    return Path(name)
