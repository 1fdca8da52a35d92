"""One API worker: `python -m apiserver --listen-fd N [--parent-fd N] [--process NAME]`, its settings as JSON in
TREEPLANE_SETTINGS.

Started by launch.py; nobody types this.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import socket
import sys
from typing import NoReturn

from apiserver import heap
from apiserver.logs.records import begin
from apiserver.metrics import place
from apiserver.parent import end_with_parent, leave
from apiserver.serve import serve
from apiserver.settings import ServerSettings

SETTINGS = "TREEPLANE_SETTINGS"
_GRACE_SECONDS = 3
"""Beyond what requests under way are given."""


def main() -> NoReturn:
    """Exits with 0: stopped; with 2: not started as launch.py does."""
    heap.share()
    begin("api")
    parser = argparse.ArgumentParser(prog="python -m apiserver", description="one API worker of treeplane")
    parser.add_argument("--listen-fd", type=int, required=True, help="an inherited socket that is bound")
    parser.add_argument("--parent-fd", type=int, help="an inherited pipe that ends with the parent")
    parser.add_argument("--process", default="api-1", help="what it is called in metrics")
    arguments = parser.parse_args()
    if SETTINGS not in os.environ:
        parser.error(f"{SETTINGS} is not set: API workers are started by `treeplane up`")
    settings = ServerSettings.from_json(os.environ[SETTINGS])
    if arguments.parent_fd is not None:
        end_with_parent(arguments.parent_fd, settings.shutdown_seconds + _GRACE_SECONDS)
    os.umask(0o077)
    place.begin(settings.data_dir, arguments.process)
    # A watch holds a connection, and there may be many thousands.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # Until the server takes over (worker.py): a start that is called off closes what it has opened.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    listener = socket.socket(fileno=arguments.listen_fd)
    # It is not for children: a git that outlives this process would hold the port, and who connects would wait.
    listener.set_inheritable(False)
    serve(settings, listener)
    leave()


if __name__ == "__main__":
    main()
