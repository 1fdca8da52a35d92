"""OpenSSH's server, which forges let git in by: found where it is, unpacked where it is not.

Used by tests/support/realsshd. In this order: ``SSHD_BINARY``, the one on ``PATH`` or in /usr/sbin, Debian's packages
(debianpackages).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from realclusters.debianpackages import unpacked

PACKAGES = ("openssh-server", "libwrap0")


class SshdProgram(NamedTuple):
    """`libraries`: a folder with those that it needs besides the machine's; None: none."""

    path: Path
    libraries: Path | None = None


def find() -> SshdProgram:
    """Raises Unavailable."""
    told = os.environ.get("SSHD_BINARY") or shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if told:
        return SshdProgram(Path(told))
    folder = unpacked("sshd", PACKAGES, "have sshd on PATH, or set SSHD_BINARY")
    [libraries] = folder.glob("usr/lib/*-linux-gnu")
    return SshdProgram(folder / "usr/sbin/sshd", libraries)
