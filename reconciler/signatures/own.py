"""This server's own key, `keys/commits`, and the signatures that it makes of its commits.

Called by whatever makes commits, on both branches, and by verifier.py. In the form that OpenSSH and git have, so git
alone can check it. Signed in process, in 0.06 ms (ssh-keygen takes 7; with it a commit takes 0.2 ms longer): the write
path makes hundreds of commits a second. Ed25519 signs the same the same way each time, so a commit's id still follows
from its content.
"""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from apiserver.auth.files import locked, private_directory, write_private
from apiserver.auth.keys import KeysError, made_new, may_be_new
from reconciler.signatures import sshsig

NAME = "commits"
EXCERPT = "Excerpt-Of"
"""The trailer of a commit that this server makes for a tenant's repository (statusbranch/excerpt). What lies beneath
that, its tenant chooses: so this server's signature of it vouches for nothing of the fleet's."""
_TYPE = b"ssh-ed25519"
_OTHERS = 0o077
_COPIES = "a backup of the keys directory has it; nothing else has"
_LOST = "what the old one signed is then no longer known as this server's"


class KnownCommitKey:
    """The public half, which tells what the server signed. `key`: for people, like `SSH SHA256:…`. `public`: its line,
    as `keys/commits.pub` holds it."""

    def __init__(self, public: Ed25519PublicKey) -> None:
        self._public = public
        self._wire = sshsig.string(_TYPE) + sshsig.string(public.public_bytes_raw())
        self.key = f"SSH {sshsig.fingerprint(self._wire)}"
        self.public = f"{sshsig.line(self._wire)} treeplane"

    @classmethod
    def read(cls, path: Path) -> KnownCommitKey:
        """A file like `keys/commits.pub`. Raises KeysError for one that holds no such key."""
        try:
            found = serialization.load_ssh_public_key(path.read_bytes())
        except (OSError, ValueError, UnsupportedAlgorithm) as error:
            raise KeysError(f"{path} is not a public key of OpenSSH's: name a server's keys/{NAME}.pub") from error
        if not isinstance(found, Ed25519PublicKey):
            raise KeysError(f"{path} is no Ed25519 key: name a server's keys/{NAME}.pub")
        return cls(found)

    @staticmethod
    def is_excerpt(payload: bytes) -> bool:
        """Whether a commit's bytes, as they are signed, say that it is one for a tenant's repository."""
        return f"\n{EXCERPT}: ".encode() in payload.partition(b"\n\n")[2]

    def made(self, payload: bytes, armor: str) -> bool:
        """Whether this key made that signature of a commit's bytes."""
        try:
            signature = sshsig.parse(armor)
            if signature.key != self._wire or signature.namespace != sshsig.NAMESPACE:
                return False
            kind, found = sshsig.algorithm(signature.signature)
            self._public.verify(found, sshsig.to_sign(payload, signature.hash))
        except (ValueError, InvalidSignature):
            return False
        return kind == _TYPE


class CommitKey(KnownCommitKey):
    """Both halves."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        super().__init__(private.public_key())
        self._private = private

    @classmethod
    def open(cls, keys_dir: Path) -> CommitKey:
        """Made at first, in the directory and with it; read afterwards. Raises KeysError for one that cannot be used,
        or made, and for one that is lost while its public half is there (see apiserver/auth/keys)."""
        path, public = keys_dir / NAME, keys_dir / f"{NAME}.pub"
        try:
            private_directory(keys_dir)
            with locked(keys_dir):
                if not path.exists():
                    if public.exists():
                        may_be_new(path, _COPIES, _LOST)
                    write_private(path, _pem(Ed25519PrivateKey.generate()))
                    made_new(path)
                elif path.stat().st_mode & _OTHERS:
                    path.chmod(0o600)
                found = cls(_read(path))
                if not public.is_file() or public.read_bytes() != found.public.encode() + b"\n":
                    write_private(public, found.public.encode() + b"\n")
        except OSError as error:
            raise KeysError(f"{path} cannot be used ({error.strerror}): mend that, and start again") from error
        return found

    @classmethod
    def known(cls, keys_dir: Path) -> CommitKey | None:
        """The same where nothing may be made or mended: None where there is none. Raises KeysError."""
        path = keys_dir / NAME
        try:
            return cls(_read(path)) if path.is_file() else None
        except OSError as error:
            raise KeysError(f"{path} cannot be read ({error.strerror})") from error

    def sign(self, payload: bytes) -> str:
        """The armored signature of a commit's bytes."""
        made = self._private.sign(sshsig.to_sign(payload))
        return sshsig.armored(sshsig.made(self._wire, sshsig.string(_TYPE) + sshsig.string(made)))


def _pem(key: Ed25519PrivateKey) -> bytes:
    form = serialization.PrivateFormat.OpenSSH
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _read(path: Path) -> Ed25519PrivateKey:
    try:
        found = serialization.load_ssh_private_key(path.read_bytes(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise KeysError(f"{path} is not a private key of OpenSSH's without a passphrase. {_HINT}") from error
    if not isinstance(found, Ed25519PrivateKey):
        raise KeysError(f"{path} is no Ed25519 key. {_HINT}")
    return found


_HINT = (
    "Put it back from a backup; or move it away, and a new one is made with the next start: what the old one signed is "
    "then no longer known as this server's"
)
