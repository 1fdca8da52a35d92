"""What `up` prints once it serves: the lines to type next. Unwrapped, and without a secret in them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from apiserver.auth.pki import Keys

_HIDES_CA = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY")
"""Variables that git prefers to the settings that the clone carries."""
_SECONDS = 5
"""That git may take to say what stands in its configuration."""


def clone_line(url: str, keys: Keys, ca: Path | None, folder: str = "fleet") -> str:
    """`git clone …` that leaves CA and credential, by path, in the clone, so that a bare `git push` works there. `ca`:
    the file with what vouches for the server; None: the system does."""
    return shlex.join(["git", *clone_arguments(url, keys, ca, folder)])


def clone_arguments(url: str, keys: Keys, ca: Path | None, folder: str) -> list[str]:
    """The same as git takes it."""
    parts = ["clone"]
    settings = {
        **({"http.sslCAInfo": ca} if ca else {}),
        "http.sslCert": keys.admin.certificate,
        "http.sslKey": keys.admin.key,
    }
    for name, path in settings.items():
        parts += ["--config", f"{name}={path.resolve()}"]
    for name, value in (("user.name", "Treeplane admin"), ("user.email", "admin@localhost")):
        if not _git_has(name):
            parts += ["--config", f"{name}={value}"]
    return [*parts, f"{url}/git/fleet.git", folder]


def _git_has(name: str) -> bool:
    command = ["git", "config", "--global", "--get", name]
    try:
        found = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return found.returncode == 0 and bool(found.stdout.strip())


def next_steps(kubeconfig: Path, clone: str) -> str:
    """For a second terminal."""
    lines = [
        f"export KUBECONFIG={shlex.quote(str(kubeconfig))} PATH={shlex.quote(_bin())}:$PATH",
        "kubectl get workspaces",
        "kubectl ws tree",
    ]
    if clone:
        hiding = [name for name in _HIDES_CA if name in os.environ]
        if hiding:
            lines.append(f"unset {' '.join(hiding)}  # git would take it instead of the clone's CA")
        lines.append(clone)
    return "\n".join(f"  {line}" for line in lines)


def _bin() -> str:
    """Where this program's scripts are: kubectl finds its plugin there."""
    return str(Path(sys.executable).parent)
