"""The parts of Kubernetes' tree that kubectl's suite needs, as a writable folder.

They come from the Go module k8s.io/kubernetes, which realclusters pins and `go mod download` brings; nothing of them is
kept in this repository. Used by __main__.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

from realclusters import binaries

PARTS = ("test/cmd", "test/fixtures", "test/e2e/testing-manifests", "hack", "third_party/forked/shell2junit")
LEGACY = Path("test", "cmd", "legacy-script.sh")
_AS_KUBECTL = ("-trimpath", "-ldflags", "-s -w")
"""Built like kubectl, so that Go finds most of it in its cache."""
INLINE = "inline"
"""Not a function: the checks that stand between them."""


def lay_out(folder: Path, kubectl: str = "") -> list[str]:
    """Copy the parts into `folder`, with kubectl where the suite looks for it; the functions in the suite's order.

    `kubectl`: another one than the version's own. Raises binaries.Unavailable where there is no Go or no kubectl.
    """
    source = module()
    for part in PARTS:
        shutil.copytree(source / part, folder / part, copy_function=_copy)
    programs = folder / "_output" / "bin"
    programs.mkdir(parents=True)
    (programs / "kubectl").symlink_to(kubectl or binaries.find().kubectl)
    _go("build", *_AS_KUBECTL, "-o", str(programs / "kubectl-convert"), "k8s.io/kubernetes/cmd/kubectl-convert")
    text = (folder / LEGACY).read_text()
    return [INLINE, *dict.fromkeys(re.findall(r"^ +record_command (run_\w+)$", text, re.MULTILINE))]


def module() -> Path:
    """Where the module's files are, downloaded first if need be."""
    if shutil.which("go") is None:
        raise binaries.Unavailable("kubectl's suite comes with the Go module k8s.io/kubernetes: have go on PATH")
    return Path(json.loads(_go("mod", "download", "-json", f"k8s.io/kubernetes@{binaries.KUBERNETES}"))["Dir"])


def _go(*arguments: str) -> str:
    """Standard output of `go …`, where realclusters' go.mod says the versions."""
    command, variables = ["go", *arguments], {**os.environ, "CGO_ENABLED": "0"}
    done = subprocess.run(command, cwd=binaries.HERE, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise binaries.Unavailable(f"{' '.join(command)}: {done.stdout.strip()} {done.stderr.strip()}")
    return done.stdout


def _copy(source: str, target: str) -> None:
    """Writable, and executable if it is a script: a module keeps neither permission."""
    shutil.copyfile(source, target)
    with Path(source).open("rb") as file:
        runs = file.read(2) == b"#!"
    Path(target).chmod(stat.S_IRUSR | stat.S_IWUSR | (stat.S_IXUSR if runs else 0))
