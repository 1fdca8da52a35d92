"""Whose OpenPGP signature it is. The door to pysequoia.

Called by verifier.py, and by signers.py for what cannot be read. The library judges a signature by the time that the
signature itself says it was made at, which its maker chooses. It was found (0.1.35) that it

- takes a signature of a key that has expired since, if that says to be older; and of a subkey likewise,
- takes a signature over text, which is the same for other line breaks than those that were signed,
- reads the first of two signatures and passes over the second;
- and that it refuses what comes of a revoked key, of a subkey that may not sign or whose binding is not its own, what
  has expired itself or lies in the future, and MD5 and SHA-1.

What it takes and we do not is looked for here: a key counts if it does at the present time.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

import pysequoia
from pysequoia.packet import HashAlgorithm, Packet, PacketPile, SignatureType, Tag

from reconciler.signatures.verdict import NotVerified, Signer, Unverified

BEGIN, _END = "-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----"
_ARMOR = re.compile(
    BEGIN + r"\n(?:[A-Za-z]+: [^\n]*\n)*\n([A-Za-z0-9+/=\n]+?)\n(?:=([A-Za-z0-9+/]{4})\n)?" + _END + r"\n?"
)
_T = TypeVar("_T")
_WEAK = (HashAlgorithm.MD5, HashAlgorithm.SHA1, HashAlgorithm.RipeMD)


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of a certificate, that itself or a subkey. `ends`: when it expires; `revoked`: by any signature that says
    so, be that good or not."""

    ends: datetime | None = None
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class _Owned:
    user: str
    certificate: pysequoia.Cert
    keys: Mapping[str, _Key]
    """By fingerprint."""


@dataclass(frozen=True, slots=True)
class OpenpgpKeys:
    """`by_key`: by fingerprint and by key id, of keys and subkeys alike. `problems`: positions in what was read, and
    why they count for nobody."""

    by_key: Mapping[str, tuple[_Owned, ...]] = field(default_factory=dict)
    problems: tuple[tuple[int, str], ...] = ()


class _NotRead(Exception):
    pass


@lru_cache(maxsize=4)
def read(certificates: tuple[tuple[str, bytes], ...]) -> OpenpgpKeys:
    """Of (user, certificate). Never raises: what cannot be read is a problem of that one alone. 0.3 ms for each."""
    found, problems = defaultdict[str, list[_Owned]](list), list[tuple[int, str]]()
    for number, (user, data) in enumerate(certificates):
        try:
            owned = _certificate(user, data)
        except _NotRead as error:
            problems.append((number, str(error)))
            continue
        for fingerprint in owned.keys:
            for name in {fingerprint, fingerprint[-16:]}:
                found[name].append(owned)
    return OpenpgpKeys({name: tuple(all_) for name, all_ in found.items()}, tuple(problems))


def signer(payload: bytes, armor: str, known_keys: OpenpgpKeys) -> Signer:
    """Raises NotVerified."""
    signature = _signature(armor)
    issuer = signature.issuer_fingerprint or signature.issuer_key_id
    if issuer is None:
        raise NotVerified("its signature names no key")
    owners = known_keys.by_key.get(issuer.lower(), ())
    if not owners:
        raise NotVerified(f"the key OpenPGP {issuer.upper()} is nobody's in signers/", Unverified.UNKNOWN)
    good = [(owned, key) for owned in owners if (key := _made_by(owned, payload, signature))]
    if not good:
        barred = next((why for owned in owners if (why := _barred(owned, issuer.lower()))), "")
        raise NotVerified(barred or "its signature is bad")
    users = sorted({owned.user for owned, _ in good})
    shown = good[0][0].certificate.fingerprint.upper()
    if len(users) > 1:
        several = f"the key OpenPGP {shown} is given to more than one in signers/ ({', '.join(users[:5])})"
        raise NotVerified(f"{several}: so it is nobody's", Unverified.UNKNOWN)
    bars = [_barred(owned, key) for owned, key in good]
    if all(bars):
        raise NotVerified(bars[0], Unverified.LAPSED)
    return Signer(users[0], f"OpenPGP {shown}")


def _signature(armor: str) -> pysequoia.Sig:
    data = _unarmored(armor)
    packets = _asked(lambda: list(PacketPile.from_bytes(data))) if data else None
    if packets is None or len(packets) != 1 or packets[0].tag != Tag.Signature:
        raise NotVerified("its signature is damaged, or more than one")
    if packets[0].signature_type != SignatureType.Binary:
        raise NotVerified("its signature is not over its bytes, but over text or something else")
    if packets[0].hash_algorithm in _WEAK:
        raise NotVerified("its signature is over a hash that is broken (SHA-1 or older)")
    made = _asked(lambda: pysequoia.Sig.from_bytes(data))
    if made is None:
        raise NotVerified("its signature is damaged")
    return made


def _unarmored(armor: str) -> bytes:
    """Empty for what gpg would not take for one armored signature. The library takes more, as without an empty line."""
    found = _ARMOR.fullmatch(armor)
    try:
        data = base64.b64decode(found[1].replace("\n", ""), validate=True) if found is not None else b""
    except binascii.Error:
        return b""
    checksum = found[2] if found is not None else None
    return data if checksum is None or base64.b64decode(checksum) == _crc24(data) else b""


def _crc24(data: bytes) -> bytes:
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)
    return crc.to_bytes(3, "big")


def _made_by(owned: _Owned, payload: bytes, signature: pysequoia.Sig) -> str:
    """The fingerprint of the key of a certificate that made a signature; "" where the library says that none did."""
    found = _asked(lambda: pysequoia.verify(payload, lambda _: [owned.certificate], signature=signature).valid_sigs)
    return str(found[0].signing_key).lower() if found else ""


def _barred(owned: _Owned, key: str) -> str:
    """Why a key does not count at present, though it once did; "" if it does."""
    fingerprint = owned.certificate.fingerprint.lower()
    shown = f"the key OpenPGP {fingerprint.upper()} of {owned.user}"
    now = datetime.now(UTC)
    for name in (fingerprint, *(f for f in owned.keys if key in (f, f[-16:]))):
        known = owned.keys[name]
        if known.revoked:
            return f"{shown} has been revoked"
        if known.ends is not None and known.ends <= now:
            return f"{shown} has expired"
    return ""


def _certificate(user: str, data: bytes) -> _Owned:
    given = _asked(lambda: list(PacketPile.from_bytes(data))) or []
    if any(packet.tag in (Tag.SecretKey, Tag.SecretSubkey) for packet in given):
        raise _NotRead(
            "it holds a private key: take it away, it is nobody's any more; write what `gpg --export` writes"
        )
    certificate = _asked(lambda: pysequoia.Cert.from_bytes(data)) if given else None
    packets = _asked(lambda: list(PacketPile.from_bytes(bytes(certificate)))) if certificate is not None else None
    ends = _asked(lambda: (certificate.expiration,)) if certificate is not None else None
    if certificate is None or packets is None or ends is None:
        raise _NotRead("it is not one OpenPGP certificate, or one that is not accepted any more")
    primary = _Key(ends[0], certificate.is_revoked)
    keys = {certificate.fingerprint.lower(): primary} | _subkeys(packets)
    return _Owned(user, certificate, keys)


def _subkeys(packets: list[Packet]) -> dict[str, _Key]:
    """By what follows each in the certificate: of its bindings the newest says when it ends."""
    found, at, bound = dict[str, _Key](), None, None
    for packet in packets:
        if packet.tag != Tag.Signature:
            at, bound = (packet if packet.tag == Tag.PublicSubkey else None), None
            if at is not None and at.fingerprint is not None:
                found[at.fingerprint.lower()] = _Key()
        elif at is not None and at.fingerprint is not None:
            name = at.fingerprint.lower()
            if packet.signature_type == SignatureType.SubkeyRevocation:
                found[name] = _Key(found[name].ends, revoked=True)
            elif packet.signature_type == SignatureType.SubkeyBinding:
                made = packet.signature_created
                if made is not None and (bound is None or made >= bound):
                    bound = made
                    found[name] = _Key(_end(at, packet), found[name].revoked)
    return found


def _end(key: Packet, binding: Packet) -> datetime | None:
    created, period = key.key_created, binding.key_validity_period
    return created + period if created is not None and period else None


def _asked(question: Callable[[], _T]) -> _T | None:
    """None where the library raises: it has one error for everything, and a panic of it is not even an Exception."""
    try:
        return question()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        return None
