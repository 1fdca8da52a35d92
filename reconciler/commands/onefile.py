"""kubectl's plugin as one file, for machines that have Python and kubectl and nothing of this: the room plugin, zipped
as Python runs it. `treeplane plugin` writes it, and `up` has it where API workers hand it out.

It is a zip and not one long module, since modules stay what they are then: `unzip -l` shows them, `unzip -p` prints
them. The same sources give the same bytes.
"""

from __future__ import annotations

import io
import zipfile
from importlib.resources import files
from pathlib import Path

from apiserver.auth.files import private_directory, write_private

PLUGIN = "kubectl-ws"
NAMES = ("kubectl-create-workspace", "kubectl_complete-ws")
"""What else it is when it is called so: `kubectl create workspace`, and what kubectl asks to complete `kubectl ws`."""

_MODE = 0o755
_WHEN = (1980, 1, 1, 0, 0, 0)
_MAIN = """\
# kubectl ws, of Treeplane; Apache-2.0. It runs what stands beside it, and says so where it cannot.
import os
import sys

if sys.version_info < (3, 11):
    sys.exit("kubectl ws needs Python 3.11 or newer, this is %s: %s" % (sys.version.split()[0], sys.executable))

from reconciler.plugin import completing, ws

mains = {"kubectl-create-workspace": ws.main_create, "kubectl_complete-ws": completing.main}
mains.get(os.path.basename(sys.argv[0]), ws.main)()
"""


def built() -> bytes:
    """The file."""
    sources = {"__main__.py": _MAIN.encode(), "reconciler/__init__.py": b""}
    for each in files("reconciler.plugin").iterdir():
        if each.name.endswith(".py"):
            sources[f"reconciler/plugin/{each.name}"] = each.read_bytes()
    out = io.BytesIO()
    out.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(sources):
            archive.writestr(zipfile.ZipInfo(name, _WHEN), sources[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def keep(file: Path) -> None:
    """The file alone, where API workers hand it out."""
    content = built()
    if not (file.is_file() and file.read_bytes() == content):
        private_directory(file.parent)
        write_private(file, content)


def write(directory: Path) -> list[tuple[Path, str]]:
    """Makes it and its other names in `directory`; each with what was done to it. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    plugin, content = directory / PLUGIN, built()
    done = [(plugin, _change(plugin.is_file(), plugin.is_file() and plugin.read_bytes() == content))]
    if done[0][1] != "unchanged":
        write_private(plugin, content)
    plugin.chmod(_MODE)
    for name in NAMES:
        link = directory / name
        there = link.is_symlink() or link.exists()
        same = link.is_symlink() and link.readlink() == Path(PLUGIN)
        done.append((link, _change(there, same)))
        if not same:
            link.unlink(missing_ok=True)
            link.symlink_to(PLUGIN)
    return done


def _change(there: bool, same: bool) -> str:
    return "unchanged" if same else "configured" if there else "created"
