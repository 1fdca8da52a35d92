"""The programs that render: where they are, and what they need beside themselves.

Called by renderer. Nothing is run here. A program has to be one file that the kernel starts: what stands for it as a
script could start anything, and would find nothing of what it needs where it is run.
"""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path
from typing import NamedTuple

from reconciler.rendering.request import Tool

_CALLED = {Tool.KUSTOMIZE: "kubectl", Tool.HELM: "helm"}
_OPTION = {Tool.KUSTOMIZE: "--rendering-kubectl", Tool.HELM: "--rendering-helm"}
_LIBRARIES = ("/usr", "/lib", "/lib64", "/lib32", "/nix/store", "/gnu/store")
"""Where a program that is linked to libraries finds these, as far as they are there."""
_PT_INTERP = 3


class NoProgram(Exception):
    """There is none that could be run. The text says why, `hint` what to do."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


class RenderProgram(NamedTuple):
    """`path`: the file itself. `beside`: directories that it needs to start; none where it is linked to nothing.
    `state`: changes when the file does."""

    path: Path
    beside: tuple[str, ...]
    state: tuple[int, int, int]


def program_of(tool: Tool, told: Path | None) -> RenderProgram:
    """The program of a tool: the one that settings name, else the one that PATH finds. Raises NoProgram."""
    name, option = _CALLED[tool], _OPTION[tool]
    found = str(told) if told is not None else shutil.which(name)
    if found is None:
        raise NoProgram(f"{name}, which renders this, is not on PATH", f"install {name}, or name it with {option}")
    try:
        path = Path(os.path.realpath(found, strict=True))
        status = path.stat()
        with path.open("rb") as file:
            head = file.read(64)
            dynamic = _is_dynamic(head, file.read(64 * 1024))
    except (OSError, struct.error) as error:
        raise NoProgram(f"{found} cannot be read: {error}", f"name the program {name} with {option}") from None
    if dynamic is None or not os.access(path, os.X_OK):
        text = f"{found} is no program that Linux starts by itself (is it a script?)"
        raise NoProgram(text, f"name the program {name} itself with {option}")
    beside = tuple(place for place in _LIBRARIES if Path(place).is_dir()) if dynamic else ()
    return RenderProgram(path, beside, (status.st_mtime_ns, status.st_size, status.st_ino))


def _is_dynamic(head: bytes, rest: bytes) -> bool | None:
    """Whether an ELF file of 64 bits names a loader of libraries; None where it is no such file."""
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return None
    at, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    headers = (head + rest)[at : at + size * count]
    if size < 4 or len(headers) < size * count:
        return None
    return any(struct.unpack_from("<I", headers, n * size)[0] == _PT_INTERP for n in range(count))
