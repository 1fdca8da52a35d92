"""Under which URLs a data directory was served last: for commands on the server's machine.

Written by `up` once the port is known. It stays when the server stops, so a kubeconfig can be made meanwhile.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from apiserver.auth.files import write_private

_NAME = "served-at.json"
_SECONDS = 2.0


class ServedAt(NamedTuple):
    """`url`: for clients; `local_url`: on this machine. `authority`: the file with what vouches for the server at
    `url`; "": the system does; None: the fleet's CA, as for `local_url`. `log`: the file that it logs to; "": none.
    `given`: certificates that it was given, by the fields of GivenCertificates."""

    url: str
    local_url: str
    authority: str | None = None
    log: str = ""
    given: dict[str, str] = {}  # noqa: RUF012 - a NamedTuple's default, which nobody changes

    def write(self, data_dir: Path) -> None:
        write_private(data_dir / _NAME, json.dumps(self._asdict(), indent=2).encode() + b"\n")

    @staticmethod
    def read(data_dir: Path) -> ServedAt | None:
        """None where nothing was served from there yet."""
        with suppress(OSError, ValueError, TypeError):
            return ServedAt(**json.loads((data_dir / _NAME).read_bytes()))
        return None

    def answers(self) -> bool:
        """Whether anything listens there."""
        at = urlsplit(self.local_url)
        try:
            with socket.create_connection((at.hostname, at.port or 443), _SECONDS):
                return True
        except OSError:
            return False
