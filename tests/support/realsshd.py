"""OpenSSH's own server before repositories on this machine: whose key is known gets in, and nobody else.

realclusters/sshdbinary has the program. It runs as whoever runs the tests, and lets only that user in. As root it wants
a user of its own and a directory in /run: both are there for it alone, in a mount namespace.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from realclusters import sshdbinary
from realclusters.binaries import Unavailable
from realclusters.processes import free_ports

_CONFIGURATION = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {keys}/{host}
AuthorizedKeysFile {keys}/client.pub
PidFile none
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
LogLevel VERBOSE
"""
_ALONE = """\
mount --bind "$1/passwd" /etc/passwd
mount -t tmpfs tmpfs /run
mkdir -m 755 /run/sshd
shift
exec "$@"
"""
_SECONDS = 60.0


class RealSshd:
    """`key`: the file of the private key that it takes; `log`: what it says. `keys`: where they are made."""

    def __init__(self, keys: Path) -> None:
        """Skips the test, by name, where there is no sshd."""
        try:
            self._program = sshdbinary.find()
        except Unavailable as error:
            pytest.skip(f"no sshd: {error}")
        if os.geteuid() == 0 and shutil.which("unshare") is None:
            pytest.skip("no sshd: as root it needs unshare")
        self.port = free_ports(1)[0]
        self._keys, self.key, self.log = keys, keys / "client", keys / "sshd.log"
        keys.mkdir()
        for name in ("host", "another", "client"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(keys / name)]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        passwd = Path("/etc/passwd").read_text()
        (keys / "passwd").write_text(f"{passwd}sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")

    def url(self, repository: Path) -> str:
        return f"ssh://{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1:{self.port}{repository}"

    def line(self, host: str = "host") -> str:
        """Its key, as known_hosts has it."""
        kind, key = (self._keys / f"{host}.pub").read_text().split()[:2]
        return f"[127.0.0.1]:{self.port} {kind} {key}"

    @contextlib.contextmanager
    def serving(self, host: str = "host") -> Iterator[None]:
        """`host`: the key with which it says who it is."""
        configuration = self._keys / "sshd_config"
        configuration.write_text(_CONFIGURATION.format(port=self.port, keys=self._keys, host=host))
        words = [str(self._program.path), "-D", "-e", "-f", str(configuration)]
        if os.geteuid() == 0:
            words = ["unshare", "--mount", "sh", "-euc", _ALONE, "alone", str(self._keys), *words]
        libraries = {"LD_LIBRARY_PATH": str(self._program.libraries)} if self._program.libraries else {}
        with self.log.open("ab") as log:
            server = subprocess.Popen(
                words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **libraries}
            )
        try:
            self._await(server)
            yield
        finally:
            server.terminate()
            server.wait()

    def _await(self, server: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            assert server.poll() is None, f"{shlex.join(map(str, server.args))}: {self.log.read_text()}"  # type: ignore[arg-type]
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)
