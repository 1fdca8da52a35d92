"""An SSH server for git, as forges have one: whose key is known pushes and fetches, and nobody else.

`serving_ssh` runs it in a process of its own (this file is that program, too), so that what ssh does is done with a
server on the other side of a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class SshServer:
    """`key`: the file of the private key that it takes; `line`: its own, as known_hosts has it."""

    port: int
    key: Path
    line: str

    def url(self, name: str) -> str:
        return f"ssh://git@127.0.0.1:{self.port}/{name}"


@contextlib.contextmanager
def serving_ssh(folder: Path, keys: Path) -> Iterator[SshServer]:
    """Serves the repositories in `folder`; keys are made in `keys`, where there are none yet."""
    keys.mkdir(exist_ok=True)
    for name in ("host", "client"):
        if not (keys / name).exists():
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(keys / name)]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    server = subprocess.Popen(
        [sys.executable, __file__, str(folder), str(keys)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        kind, key = (keys / "host.pub").read_text().split()[:2]
        yield SshServer(port, keys / "client", f"[127.0.0.1]:{port} {kind} {key}")
    finally:
        server.terminate()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


async def _serve(folder: Path, keys: Path) -> None:
    import asyncssh  # only the program needs it

    async def answer(process: Any) -> None:
        service, name = shlex.split(process.command or "none")
        assert service in ("git-upload-pack", "git-receive-pack")
        child = await asyncio.create_subprocess_exec(
            "git", service.removeprefix("git-"), folder / name.strip("/"), stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
        process.exit(await child.wait())

    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[str(keys / "host")],
        authorized_client_keys=str(keys / "client.pub"),
        process_factory=answer,
        encoding=None,
    )
    sys.stdout.write(f"{server.get_port()}\n")
    sys.stdout.flush()
    await server.wait_closed()


if __name__ == "__main__":
    os.environ.pop("GIT_DIR", None)
    asyncio.run(_serve(Path(sys.argv[1]), Path(sys.argv[2])))
