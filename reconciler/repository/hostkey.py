"""What a person needs to know who is to take an ssh host's key: the line for known_hosts, and the key's fingerprint.

Called by remote.py once ssh has refused a host that it does not know. ssh does not say which key that was, so it is run
once more, with a file of its own in which it notes the key, and without anything to log in with. The key that is found
is anybody's who answers: it goes nowhere but into the message, for somebody who compares it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from reconciler.repository.command import git, quiet_environment

_LINE = re.compile(r"(?P<host>[\w.:\[\]%-]{1,300}) (?P<kind>[a-z0-9@.-]{1,60}) (?P<key>[A-Za-z0-9+/]{1,1500}={0,2})")
_UNKNOWN = re.compile(r"host key is known for|Host key verification failed")
_CHANGED = "IDENTIFICATION HAS CHANGED"
_GRACE = 5


class HostKey(NamedTuple):
    """`line`: as it stands in known_hosts."""

    line: str
    fingerprint: str


def is_unknown(said: str) -> bool:
    """Whether ssh says that it does not know the host."""
    return _UNKNOWN.search(said) is not None and not is_another(said)


def is_another(said: str) -> bool:
    """Whether ssh says that the host has another key than the one that is known."""
    return _CHANGED in said


def found(git_dir: Path, url: str, command: list[str], connect: int) -> HostKey | None:
    """The key that the host of a URL shows now; None where it shows none in time. `command`: ssh, as it was run."""
    address = _address(git(git_dir, "ls-remote", "--get-url", url).output.strip() or url)
    if address is None:
        return None
    with tempfile.TemporaryDirectory(prefix="treeplane-hostkey-") as folder:
        noted = Path(folder) / "known_hosts"
        options = {
            "StrictHostKeyChecking": "accept-new",
            "UserKnownHostsFile": f'"{noted}"',
            "GlobalKnownHostsFile": "/dev/null",
            "HashKnownHosts": "no",
            "CheckHostIP": "no",
            "PreferredAuthentications": "none",
            "IdentityFile": "none",
            "IdentityAgent": "none",
        }
        # Of an option that is given twice the first counts.
        words = [command[0], *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
        try:
            subprocess.run(
                [*words, *command[1:], *address, "true"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=quiet_environment(),
                timeout=connect + _GRACE,
                start_new_session=True,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        try:
            return _read(noted.read_text(errors="replace"))
        except FileNotFoundError:
            return None


def _read(text: str) -> HostKey | None:
    line = _LINE.fullmatch(text.partition("\n")[0].strip())
    if line is None:
        return None
    try:
        key = base64.b64decode(line["key"], validate=True)
    except binascii.Error:
        return None
    fingerprint = base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
    return HostKey(line[0], f"SHA256:{fingerprint}")


def _address(url: str) -> list[str] | None:
    """ssh's arguments for the host of a URL."""
    if "://" in url:
        try:
            parts = urlsplit(url)
            named, _, _ = parts.netloc.rpartition("@")
            user, host, port = unquote(named.partition(":")[0]), parts.hostname or "", parts.port
        except ValueError:
            return None
    else:
        named, _, rest = url.partition(":")[0].rpartition("@")
        user, host, port = named, rest, None
    if not host:
        return None
    return [*(["-p", str(port)] if port else []), *(["-l", user] if user else []), "--", host]
