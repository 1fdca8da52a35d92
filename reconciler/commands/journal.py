"""The log of a run of `treeplane up`: where it goes, and the two places that what is told goes to.

What `up` prints on its standard output is for a person at a terminal. Who has the log as JSON or in a file reads no
terminal, so that is logged, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from apiserver.logs.outlets import Outlets
from apiserver.logs.rotated import RotatedFile
from reconciler.commands import tasks
from reconciler.commands.failure import Failure
from reconciler.commands.settings import LogSettings

_MIB = 1024 * 1024
log = logging.getLogger(__name__)


@contextmanager
def journal(settings: LogSettings) -> Iterator[Outlets]:
    """For the processes of a server; this process logs there until it ends. Raises Failure where there is no such
    file."""
    outlets = Outlets(settings.log_level, settings.log_format, _file(settings))
    outlets.begin(tasks.UP)
    try:
        yield outlets
    finally:
        outlets.close()


def keep(settings: LogSettings, text: str) -> None:
    """What is told to a person."""
    if settings.log_file is not None or settings.log_format != "text":
        log.setLevel(logging.INFO)  # whatever else is left out
        log.info("%s", text)


def _file(settings: LogSettings) -> RotatedFile | None:
    if settings.log_file is None:
        return None
    file = RotatedFile(settings.log_file.absolute(), settings.log_file_mib * _MIB, settings.log_files)
    try:
        file.append(b"")
    except OSError as error:
        raise Failure(
            f"--log-file: {file.path} cannot be written: {error.strerror}",
            "name a file in a directory that is there and that this user may write to",
        ) from error
    return file
