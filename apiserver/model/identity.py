"""Identifiers that are computed from content, so that a re-cloned fleet gets the same ones.

The encodings (base36 and base62 over SHA-224) are kcp's: the names of downstream namespaces and sync target keys are
the ones that kcp's users know.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable

from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key

_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_BASE62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAMESPACE = uuid.UUID("6f0f2f0e-5f0a-5d5c-9a53-7e2c6d1b8a11")
_POWERS = [36**digits for digits in range(44)]
"""Of the digits of a SHA-224."""
_NAME = 16
"""Digits of a logical cluster name."""
_BEGIN = 8
"""Bytes of a SHA-224 by which names are put in order."""
_FULL = _POWERS[43] >> 8 * (28 - _BEGIN)
"""Where, of these, those begin whose SHA-224 has all digits."""
_PAIRS = [high + low for high in _BASE36 for low in _BASE36]
_NAMED = hashlib.sha1(_NAMESPACE.bytes, usedforsecurity=False)
"""What the digest of every UID begins with."""
_VARIANT = {f"{digit:x}": f"{digit & 0x3 | 0x8:x}" for digit in range(16)}
"""The digit that says which kind of UUID it is keeps two of its bits."""


_UID = 16
"""Bytes."""
_OF_DIGEST = (1 << 128) - 1 - (0xF << 76 | 0x3 << 62)
"""The bits of a UID that are its digest's; the others say which kind of UUID it is."""
_OF_UUID = 0x5 << 76 | 0x2 << 62


def _encode(digest: bytes, alphabet: str) -> str:
    number, base, out = int.from_bytes(digest, "big"), len(alphabet), []
    while number:
        number, digit = divmod(number, base)
        out.append(alphabet[digit])
    return "".join(reversed(out)) or alphabet[0]


def base36_sha224(text: str, first: int = 0) -> str:
    """Lower-case base36 of SHA-224, big-endian, not padded. `first`: only so many digits of it."""
    digest = hashlib.sha224(text.encode()).digest()
    return _first_of_base36(int.from_bytes(digest, "big"), first) if first else _encode(digest, _BASE36)


def _first_of_base36(number: int, count: int) -> str:
    """The digits that stay are far fewer than all, and each of those costs a division of a long number."""
    rest = max(0, len(_POWERS) - count)
    while rest and number < _POWERS[rest + count - 1]:
        rest -= 1
    number //= _POWERS[rest]
    if count == _NAME and rest:  # as for every logical cluster: no loop, and no digit that is not there
        high, low = divmod(number, _POWERS[8])
        parts = *divmod(high, _POWERS[4]), *divmod(low, _POWERS[4])
        return "".join([_PAIRS[each // 1296] + _PAIRS[each % 1296] for each in parts])
    out = []
    while number:
        number, pair = divmod(number, len(_PAIRS))
        out.append(_PAIRS[pair])
    return "".join(reversed(out)).lstrip("0") or "0"


def home_cluster_name(user: str) -> str:
    """The logical cluster name of a user's home workspace: as in kcp, base36 of the first eight bytes of
    SHA-224(user)."""
    return _encode(hashlib.sha224(user.encode()).digest()[:8], _BASE36)


def base36(number: int, digits: int) -> str:
    """The last so many digits of a number in lower-case base36, padded."""
    return _encode(number.to_bytes(16, "big"), _BASE36)[-digits:].rjust(digits, "0")


def base62(data: bytes) -> str:
    """Base62 (0-9a-zA-Z) of bytes, big-endian, not padded."""
    return _encode(data, _BASE62)


def base62_sha224(text: str) -> str:
    """Base62 (0-9a-zA-Z) of SHA-224, big-endian, not padded."""
    return _encode(hashlib.sha224(text.encode()).digest(), _BASE62)


def object_uid(fleet: str, key: Key, origin: CommitRef) -> str:
    """The UID of what git declares.

    `fleet` is the fleet id, `key` where it stands in the store, `origin` the commit in which it appeared. Delete and
    recreate gives another origin, so another UID; a workspace that moves keeps its logical cluster name, and its
    objects keep theirs. What a bound resource is stored under besides its name makes no difference.
    """
    # uuid.uuid5 by hand: it is computed for every object of a load, and the UUID class costs three times the hash.
    resource = key.resource.partition(":")[0]
    out = _named((fleet, key.cluster, resource, key.namespace, key.name, str(origin))).hexdigest()
    return f"{out[:8]}-{out[8:12]}-5{out[13:16]}-{_VARIANT[out[16]]}{out[17:20]}-{out[20:32]}"


def uids_in(fleet: str, key: Key, origin: CommitRef, clusters: Iterable[str]) -> list[bytes]:
    """The 16 bytes of each `object_uid`, of a resource that is not bound, of objects that differ in their logical
    cluster alone."""
    behind = "\0".join(("", key.resource, key.namespace, key.name, str(origin)))
    return _uids(f"{fleet}\0", clusters, behind)


def uids_named(fleet: str, key: Key, origin: CommitRef, names: Iterable[str]) -> list[bytes]:
    """The same of objects that differ in their name alone."""
    before = "\0".join((fleet, key.cluster, key.resource, key.namespace, ""))
    return _uids(before, names, f"\0{origin}")


def _uids(before: str, own: Iterable[str], behind: str) -> list[bytes]:
    begun, end, out = _NAMED.copy(), behind.encode(), list[bytes]()
    begun.update(before.encode())
    for text in own:
        digest = begun.copy()
        digest.update(text.encode() + end)
        number = int.from_bytes(digest.digest()[:_UID], "big")
        out.append((number & _OF_DIGEST | _OF_UUID).to_bytes(_UID, "big"))
    return out


def _named(parts: tuple[str, ...]) -> hashlib._Hash:
    digest = _NAMED.copy()
    digest.update("\0".join(parts).encode())
    return digest


def logical_cluster_name(fleet: str, path: str, origin: CommitRef) -> str:
    """16 base36 characters; the root workspace keeps its name, as in kcp."""
    if path == "root":
        return "root"
    return logical_cluster_names(fleet, (path,), origin)[0]


def logical_cluster_names(fleet: str, paths: Iterable[str], origin: CommitRef) -> list[str]:
    """Of several that are not the root."""
    digests = _digests_of_names(fleet, paths, origin)
    return [_first_of_base36(int.from_bytes(digest, "big"), _NAME) for digest in digests]


def name_orders(fleet: str, paths: Iterable[str], origin: CommitRef) -> list[int]:
    """Numbers by which logical cluster names stand in their order, but for a few that begin alike; one costs a third of
    the name."""
    out = list[int]()
    for digest in _digests_of_names(fleet, paths, origin):
        number = int.from_bytes(digest[:_BEGIN], "big")
        while 0 < number < _FULL:
            number *= len(_BASE36)  # the name is not padded: it begins with the next digit
        out.append(number)
    return out


def _digests_of_names(fleet: str, paths: Iterable[str], origin: CommitRef) -> list[bytes]:
    before, behind = f"{fleet}\0", f"\0{origin}"
    return [hashlib.sha224(f"{before}{path}{behind}".encode()).digest() for path in paths]


def sync_target_key(cluster: str, name: str) -> str:
    """The key that labels carry: base62(sha224("<logical cluster>:<name>"))."""
    return base62_sha224(f"{cluster}:{name}")


def namespace_locator(target_cluster: str, target: str, target_uid: str, cluster: str, namespace: str) -> str:
    """Compact JSON, in kcp's field order: what a downstream namespace's annotation holds."""
    locator = {
        "syncTarget": {"cluster": target_cluster, "name": target, "uid": target_uid},
        "cluster": cluster,
        "namespace": namespace,
    }
    return json.dumps(locator, separators=(",", ":"))


def downstream_namespace(locator: str) -> str:
    """`kcp-` and the first 12 characters of base36(sha224(locator))."""
    return "kcp-" + base36_sha224(locator, 12)


def tenant_id(target_cluster: str, target: str, target_uid: str, cluster: str) -> str:
    """What downstream namespaces of one workspace have in common: base62(sha224(locator without namespace))."""
    return base62_sha224(namespace_locator(target_cluster, target, target_uid, cluster, ""))
