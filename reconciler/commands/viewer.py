"""The process that reads commits for API workers. Started by `up` beside the reconciler.

Until somebody asks it waits for that and has imported next to nothing: most servers are never asked. Then it becomes
what answers (viewing/service), in the same process, for good.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from apiserver.localsocket import COMMITS, address
from apiserver.logs.records import begin
from apiserver.metrics import place
from reconciler.commands import tasks
from reconciler.commands.told import heard

_WAITING = 64
_PROGRAMS = ("rendering_kubectl", "rendering_helm")
"""Settings that name the programs which render."""


def main() -> None:
    """Settings come as for the reconciler's process."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    begin(tasks.VIEWER)
    parent = sys.stdin.fileno()
    settings = json.loads(heard(parent))
    data_dir = Path(settings["data_dir"])
    place.begin(data_dir, tasks.VIEWER)
    with bound(data_dir) as listener:
        found, _, _ = select.select([listener, parent], [], [])  # nothing is ever said there: it is the parent's end
        if parent not in found:
            programs = [Path(name) if name else None for name in map(settings.get, _PROGRAMS)]
            renders = import_module("reconciler.commands.rendering").renderer_of_server(data_dir, *programs)
            serve: Callable[..., None] = import_module("reconciler.viewing.service").serve
            part, access = import_module("apiserver.options").part, import_module("reconciler.repository.access")
            reached = part(access.RemoteAccess, settings)
            serve(listener, data_dir, settings["source"], renders, folder=settings["path"], access=reached)


def bound(data_dir: Path) -> socket.socket:
    """The socket at which API workers ask. Raises OSError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with address(data_dir, COMMITS) as at:
        Path(at).unlink(missing_ok=True)  # of a former self
        listener.bind(at)
        Path(at).chmod(0o600)
    listener.listen(_WAITING)
    return listener


if __name__ == "__main__":
    main()
