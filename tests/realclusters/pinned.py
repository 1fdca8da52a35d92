"""Programs that Go builds into the cache, each of a module that the go.mod in a folder here pins.

Used by giteabinary, promtoolbinary and fluxbinary, which say how. None is optimized: that takes a third off what
compiling costs, and the tests ask for little.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realclusters import binaries
from realclusters.binaries import Unavailable

_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class PinnedProgram:
    """`name`: of the folder with go.mod, and of the program. `package`: what is built. `arguments`: Go's. `remedy`:
    what to do where it cannot be built. `recipe`: what else the outcome depends on: where it differs, it is built anew.
    """

    name: str
    package: str
    arguments: tuple[str, ...]
    remedy: str
    recipe: tuple[Any, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: {"CGO_ENABLED": "0"})

    @property
    def module(self) -> Path:
        """The folder with go.mod."""
        return _HERE / self.name

    def find(self, beside: Callable[[Path], None] = lambda folder: None) -> Path:
        """The program, built first if need be (several processes may ask at once: one builds). `beside`: puts what else
        is wanted into its folder. Raises Unavailable."""
        told = os.environ.get(f"{self.name.upper()}_BINARY")
        if told:
            if not Path(told).is_file():
                raise Unavailable(f"{self.name.upper()}_BINARY={told} is no file")
            return Path(told)
        folder = binaries.cache_home().with_name(self.name) / self._digest()
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with binaries.locked(folder.parent / f"{folder.name}.lock"):
                if not folder.exists():
                    self._build(folder, beside)
        return folder / self.name

    def go(self, *words: str) -> str:
        """What Go answers in the module."""
        environment = {**os.environ, **self.environment}
        return binaries.run([binaries.go(), *words], environment, self.module, self.remedy)

    def _digest(self) -> str:
        parts = [(self.module / name).read_bytes() for name in ("go.mod", "go.sum")]
        parts.append(repr((*self.recipe, platform.machine())).encode())
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]

    def _build(self, folder: Path, beside: Callable[[Path], None]) -> None:
        """Built beside the final folder and renamed: whoever finds the folder finds it whole."""
        binaries.cache_home().mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
        try:
            sys.stderr.write(f"building {self.name} for the tests into {folder} (once)\n")
            self.go(*self.arguments, "-o", str(scratch / self.name), self.package)
            beside(scratch)
            scratch.rename(folder)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise


def copy(source: Path, target: Path) -> None:
    """A folder of a module, without modes: Go's modules are nobody's to write to, and so nobody's to delete."""
    for file in source.rglob("*"):
        if file.is_file():
            (target / file.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / file.relative_to(source))
