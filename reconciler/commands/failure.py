"""How a command ends badly: a message with what to do, and an exit code (1 differences, 2 usage, >2 anything else)."""

from __future__ import annotations

import errno

import click

USAGE = 2
BROKEN = 3
BUSY = 4

_OF_FILES = {
    errno.ENOSPC: ("there is no room left on its disk", "make room (df -h shows which disk is full), and start again"),
    errno.EDQUOT: ("there is no room left for this user", "make room, and start again"),
    errno.EROFS: ("its file system is read-only", "mount it so that it can be written to, or name another place"),
    errno.EACCES: ("this user may not use it", "run it as the user whose it is, or give it to this one (chown)"),
    errno.EPERM: ("this user may not change it", "run it as the user whose it is, or give it to this one (chown)"),
    errno.ENOTDIR: ("a part of its path is a file, and no directory", "name another place"),
    errno.EISDIR: ("it is a directory, and no file", "move it away, or name another place"),
    errno.ENAMETOOLONG: ("its path is too long", "name another place"),
    errno.ELOOP: ("its path has links that lead to each other", "name another place"),
    errno.EIO: ("its disk answers with an error", "look at the disk (dmesg); one that is lost: treeplane recover"),
    errno.EMFILE: ("this process may open no more files", "raise the limit (ulimit -n), and start again"),
    errno.ENFILE: ("this machine may open no more files", "raise the limit (sysctl fs.file-max), and start again"),
}
"""What a user can mend about the files that a command works with: what is wrong, and what to do."""


class Failure(click.ClickException):
    """`text` says what and where, `hint` what to do."""

    def __init__(self, text: str, hint: str = "", code: int = BROKEN) -> None:
        super().__init__(f"{text}\n{hint}" if hint else text)
        vars(self)["exit_code"] = code


def of_files(error: OSError) -> Failure | None:
    """What the system refused, as a sentence; None for what is nothing that a user could mend."""
    known = _OF_FILES.get(error.errno or 0)
    if known is None:
        return None
    what, hint = known
    return Failure(f"{error.filename}: {what}" if error.filename else f"a file cannot be written: {what}", hint)
