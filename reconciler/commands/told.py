"""How `up` tells the processes that it starts what they have to know: in the first line of their standard input, since
one of them is started before that is known. Nothing is said there after that, and its end is the parent's.

Imports next to nothing, for one that is small.
"""

from __future__ import annotations

import contextlib
import os
import subprocess


def tell(process: subprocess.Popen[bytes], settings: str) -> None:
    """`settings`: JSON, as settings.to_json writes it. That a process has ended meanwhile shows elsewhere."""
    assert process.stdin is not None
    left = f"{settings}\n".encode()
    with contextlib.suppress(BrokenPipeError):
        while left:
            left = left[os.write(process.stdin.fileno(), left) :]


def heard(pipe: int) -> str:
    """What the parent told. Raises SystemExit where it ended before it did."""
    found = b""
    while not found.endswith(b"\n"):
        part = os.read(pipe, 65536)
        if not part:
            raise SystemExit(0)
        found += part
    return found.decode()
