"""Who holds a TCP port, as far as /proc tells: for `up` that finds it taken, which names them, or waits for its own."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_LISTEN = "0A"


class PortHolder(NamedTuple):
    """A process that listens there."""

    name: str
    pid: int

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


def holder(port: int) -> PortHolder | None:
    """None where it cannot be told (another user's process, another system)."""
    inodes = {
        fields[9]
        for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
        if table.exists()
        for fields in (line.split() for line in table.read_text().splitlines()[1:])
        if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port
    }
    if not inodes:
        return None
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(fd.readlink()) in wanted for fd in (process / "fd").iterdir()):
                name = (process / "comm").read_text().strip()
                return PortHolder(name, int(process.name))
        except OSError:
            continue
    return None
