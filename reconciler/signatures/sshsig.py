"""SSH signatures as bytes: the armored block that a commit carries (SSHSIG), and the keys and certificates in it.

Called by this room alone. Nothing is verified here: whose key it says to be is looked up, and ssh-keygen judges it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final, NamedTuple

NAMESPACE: Final = "git"
"""What git's signatures are made for: one that was made for anything else is no signature of a commit."""
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_MAGIC = b"SSHSIG"
_WIDTH = 70
_CERTIFICATE = "-cert-v01@openssh.com"
_FIELDS = {"ssh-ed25519": 1, "ssh-rsa": 2, "sk-ssh-ed25519@openssh.com": 2, "sk-ecdsa-sha2-nistp256@openssh.com": 3}
"""How many fields a key has, by its type; `ecdsa-sha2-…` have two."""


class SshSignature(NamedTuple):
    """`key` is a public key, or a certificate, as it goes over the wire; `raw` is all of it without its armor."""

    key: bytes
    namespace: str
    hash: str
    signature: bytes
    raw: bytes


class Certified(NamedTuple):
    """What a certificate says: `authority` is the key that signed it, `principals` are the names that it is for."""

    authority: bytes
    principals: tuple[str, ...]


class _Fields:
    """Reads one field after the other. Raises ValueError where the bytes end too early."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) != size:
            raise ValueError("it ends too early")
        self._at += size
        return found

    def string(self) -> bytes:
        return self.take(int.from_bytes(self.take(4), "big"))

    def text(self) -> str:
        return self.string().decode()

    def more(self) -> bool:
        return self._at < len(self._data)


def string(data: bytes) -> bytes:
    """As a field of variable length is written."""
    return len(data).to_bytes(4, "big") + data


def parse(text: str) -> SshSignature:
    """Raises ValueError for what is not one armored block, and nothing beside it."""
    lines = text.rstrip("\n").split("\n")
    if len(lines) < 3 or lines[0] != BEGIN or lines[-1] != END:
        raise ValueError("it is not one armored block")
    try:
        raw = base64.b64decode("".join(lines[1:-1]), validate=True)
    except binascii.Error as error:
        raise ValueError("its armor is damaged") from error
    fields = _Fields(raw)
    if fields.take(len(_MAGIC)) != _MAGIC or fields.take(4) != (1).to_bytes(4, "big"):
        raise ValueError("it is of another version")
    key, namespace = fields.string(), fields.text()
    fields.string()  # reserved
    hashed, signature = fields.text(), fields.string()
    if fields.more():
        raise ValueError("there is more behind it")
    return SshSignature(key, namespace, hashed, signature, raw)


def made(key: bytes, signature: bytes) -> bytes:
    """A signature of git's over a SHA-512, without armor. `signature` as its algorithm writes it."""
    head = _MAGIC + (1).to_bytes(4, "big") + string(key)
    return b"".join([head, string(NAMESPACE.encode()), string(b""), string(b"sha512"), string(signature)])


def algorithm(signature: bytes) -> tuple[bytes, bytes]:
    """(algorithm, what it made) of a signature's own field. Raises ValueError."""
    fields = _Fields(signature)
    found = fields.string(), fields.string()
    if fields.more():
        raise ValueError("there is more behind it")
    return found


def to_sign(payload: bytes, hashed: str = "sha512") -> bytes:
    """What the key itself signs, of a payload. Raises ValueError for any other hash than SSH's two."""
    if hashed not in ("sha256", "sha512"):
        raise ValueError("its hash is unknown")
    digest = hashlib.new(hashed, payload).digest()
    return b"".join([_MAGIC, string(NAMESPACE.encode()), string(b""), string(hashed.encode()), string(digest)])


def armored(raw: bytes) -> str:
    """Without a line break at its end, as git keeps it."""
    text = base64.b64encode(raw).decode()
    return "\n".join([BEGIN, *(text[i : i + _WIDTH] for i in range(0, len(text), _WIDTH)), END])


def key_type(key: bytes) -> str:
    """As it begins a line of allowed_signers. Raises ValueError."""
    return _Fields(key).text()


def fingerprint(key: bytes) -> str:
    """As ssh-keygen says it of a key that is no certificate."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def is_certificate(kind: str) -> bool:
    return kind.endswith(_CERTIFICATE)


def certified(key: bytes) -> Certified:
    """Of a certificate. Raises ValueError for one of an unknown type, or damaged."""
    fields = _Fields(key)
    kind = fields.text().removesuffix(_CERTIFICATE)
    kind = kind if kind in _FIELDS else f"{kind}@openssh.com"
    count = 2 if kind.startswith("ecdsa-sha2-") else _FIELDS.get(kind, 0)
    if not count:
        raise ValueError("it is a certificate of an unknown type")
    for _ in range(count + 1):  # the nonce comes first
        fields.string()
    fields.take(8 + 4)  # its number and whether it is a user's
    fields.string()
    named, principals = _Fields(fields.string()), list[str]()
    while named.more():
        principals.append(named.text())
    fields.take(8 + 8)  # from when until when, which ssh-keygen looks at
    for _ in range(3):
        fields.string()
    return Certified(fields.string(), tuple(principals))


def line(key: bytes) -> str:
    """A public key as a line of text has it: its type and itself. Raises ValueError."""
    return f"{key_type(key)} {base64.b64encode(key).decode()}"
