"""Whose SSH signature it is: the key is looked up here, and ssh-keygen says whether it made the signature.

Called by verifier.py. ssh-keygen knows every kind of key that signs commits, those in hardware and certificates too. It
is given what we wrote ourselves: the signature in an armor of ours, and the lines of the one user whose key it is. It
judges by the present time, for whoever signs chooses a commit's times. 7 ms, of which the signature itself is little.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from reconciler.signatures import sshsig
from reconciler.signatures.allowed import AllowedKey, read
from reconciler.signatures.sshsig import SshSignature
from reconciler.signatures.verdict import NotVerified, Signer, Unverified

_PROGRAM = "ssh-keygen"
_DEADLINE = 10.0
_ONE = "signer"
"""As whom a plain key is looked up in the lines that are all of one user."""
_SAID = (
    (b"incorrect signature", "its signature is bad", Unverified.BAD),
    (
        b"not permitted for use in signature namespace",
        "the key {key} of {user} is not for signatures of git",
        Unverified.BAD,
    ),
    (b"key has expired", "the key {key} of {user} has expired", Unverified.LAPSED),
    (b"key is not yet valid", "the key {key} of {user} is not valid yet", Unverified.LAPSED),
    (b"Certificate invalid: expired", "the certificate of {user} has expired", Unverified.LAPSED),
    (b"Certificate invalid: not yet valid", "the certificate of {user} is not valid yet", Unverified.LAPSED),
)
_UNABLE = (b"unknown key type", b"unsupported", b"No user exists", b"invalid key", b"key type not supported")


def signer(payload: bytes, signature: SshSignature, allowed: bytes, where: Path | None = None) -> Signer:
    """Raises NotVerified. `where`: the directory in which what ssh-keygen reads lies for the moment."""
    if signature.namespace != sshsig.NAMESPACE:
        raise NotVerified("its signature was made for another purpose than git")
    lines, shown, principal = _lines(signature.key, allowed)
    user = lines[0].user
    answer = _ask(payload, signature.raw, _file(lines, principal), principal, where)
    if answer.returncode != 0:
        raise _refused(answer.stderr + answer.stdout, shown, user)
    return Signer(user, f"SSH {shown}")


def _lines(key: bytes, allowed: bytes) -> tuple[Sequence[AllowedKey], str, str]:
    """The lines of the one user whose key it is, how the key is told to people, and as whom to look it up."""
    keys = read(allowed).keys
    try:
        certificate = sshsig.certified(key) if sshsig.is_certificate(sshsig.key_type(key)) else None
    except ValueError:
        raise NotVerified("its signature is damaged") from None
    if certificate is None:
        found, shown = [line for line in keys.get(key, ()) if not line.authority], sshsig.fingerprint(key)
    else:
        of = keys.get(certificate.authority, ())
        found = [line for line in of if line.authority and line.user in certificate.principals]
        shown = f"certificate of {sshsig.fingerprint(certificate.authority)}"
    users = sorted({line.user for line in found})
    if not users:
        raise NotVerified(f"the key {shown} is nobody's in signers/", Unverified.UNKNOWN)
    if len(users) > 1:
        several = f"the key {shown} is given to more than one in signers/ ({', '.join(users[:5])})"
        raise NotVerified(f"{several}: so it is nobody's", Unverified.UNKNOWN)
    return found, shown, _ONE if certificate is None else users[0]


def _file(lines: Sequence[AllowedKey], principal: str) -> bytes:
    """An allowed_signers of these alone."""
    written = [f'"{principal}" {line.options}{sshsig.line(line.key)}\n' for line in lines]
    return "".join(written).encode()


def _ask(
    payload: bytes, raw: bytes, allowed: bytes, principal: str, where: Path | None
) -> subprocess.CompletedProcess[bytes]:
    try:
        with tempfile.TemporaryDirectory(prefix="signature-", dir=where) as directory:
            signers, signature = Path(directory, "allowed"), Path(directory, "signature")
            signers.write_bytes(allowed)
            signature.write_text(sshsig.armored(raw) + "\n")
            return subprocess.run(
                # The option and the name are one word: a name that begins with a dash is a name.
                [_PROGRAM, "-Y", "verify", "-n", sshsig.NAMESPACE, f"-f{signers}", f"-s{signature}", f"-I{principal}"],
                input=payload,
                capture_output=True,
                timeout=_DEADLINE,
                check=False,
                # No agent, no question, no home. Times without a zone are UTC's, as allowed.py wrote them.
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC0"},
                cwd=directory,
                start_new_session=True,
            )
    except subprocess.TimeoutExpired:
        why = f"ssh-keygen did not judge its signature within {_DEADLINE:.0f} seconds"
        raise NotVerified(why, Unverified.UNKNOWN) from None
    except OSError as error:
        if isinstance(error, FileNotFoundError) and error.filename == _PROGRAM:
            why = "ssh-keygen is not there: install OpenSSH's client, 8.8 or later"
            raise NotVerified(why, Unverified.UNKNOWN) from None
        raise NotVerified(f"ssh-keygen could not be run ({error.strerror})", Unverified.UNKNOWN) from None


def _refused(said: bytes, key: str, user: str) -> NotVerified:
    """In our words; what ssh-keygen says of its own failure is told as it says it."""
    for sign, words, how in _SAID:
        if sign in said:
            return NotVerified(words.format(key=key, user=user), how)
    if any(sign in said for sign in _UNABLE):
        line = said.decode("utf-8", "replace").strip().splitlines()[0]
        shown = "".join(c for c in line if c.isprintable())[:200]
        return NotVerified(f"ssh-keygen cannot judge its signature: {shown}", Unverified.UNKNOWN)
    return NotVerified("its signature is bad")
