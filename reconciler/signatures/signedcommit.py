"""A commit's bytes, parted into what was signed and its signature.

Called by verifier.py. git signs the whole object as it would be without its `gpgsig` header. What git would never make
itself is refused, however git would read it: then there is one way only to read what somebody signed.
"""

from __future__ import annotations

import re

from reconciler.signatures.verdict import NotVerified, Unverified

_BEGINS = re.compile(rb"tree [0-9a-f]{40}\n(?:parent [0-9a-f]{40}\n)*author [^\n]*\ncommitter [^\n]*(?:\n(?=[^\n])|$)")
_ONCE = (b"tree ", b"parent ", b"author ", b"committer ")
_HEADER = b"gpgsig"
_LARGEST = 64 * 1024


def is_signed(raw: bytes) -> bool:
    """Whether a commit bears any signature, be it good or not."""
    return b"\n" + _HEADER + b" " in raw.partition(b"\n\n")[0]


def part(raw: bytes) -> tuple[bytes, str]:
    """(what was signed, the signature) of a commit's bytes. Raises NotVerified."""
    head, blank, message = raw.partition(b"\n\n")
    begins = _BEGINS.match(head)
    if not blank or begins is None or b"\0" in head:
        raise NotVerified("it is not written as git writes a commit")
    rest = head[begins.end() :]
    kept, signature, inside = list[bytes](), list[bytes](), False
    for number, line in enumerate(rest.split(b"\n") if rest else []):
        if line.startswith(b" "):
            if not number:
                raise NotVerified("it is not written as git writes a commit")
        elif line.startswith(_ONCE):
            raise NotVerified("it is not written as git writes a commit")
        elif line.startswith(_HEADER):
            if signature or not line.startswith(_HEADER + b" "):
                raise NotVerified("it has more than one signature, or one of a kind that is not supported")
            inside = True
            signature.append(line.removeprefix(_HEADER + b" "))
            continue
        else:
            inside = False
        (signature if inside else kept).append(line.removeprefix(b" ") if inside else line)
    if not signature:
        raise NotVerified("it is not signed", Unverified.NONE)
    text = b"\n".join(signature)
    if len(text) > _LARGEST or not text.isascii():
        raise NotVerified("its signature is too large, or not text")
    payload = head[: begins.end()].removesuffix(b"\n") + b"".join([b"\n" + line for line in kept]) + blank + message
    return payload, text.decode()
