"""The continue token of paged lists: where the next page starts, at which revision, and how much is left.

base64url JSON `{"v":"meta.k8s.io/v1","rv":N,"start":"key\\u0000","left":N}`, as kube-apiserver makes it but for `left`:
clients treat it as opaque, tools that look inside find what they know. `rv` -1: a page that starts anew at the latest
revision. `left` is there where it is known, so that no page but the first has to count; a client that alters it is told
what it said.
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

import orjson

from apiserver.model.errors import StatusError, bad_request
from apiserver.model.keys import Key

_VERSION = "meta.k8s.io/v1"
LATEST = -1


class Continuation(NamedTuple):
    """`after`: the last key of the page before. `left`: how many objects are behind it, None if that is not known."""

    revision: int
    after: Key
    left: int | None


def encode(found: Continuation, cluster: str | None, namespace: str | None) -> str:
    """For a list of `cluster` (None: all) and `namespace` (None: all, or cluster-scoped)."""
    after = found.after
    start = after.name + "\0"
    if namespace is None and after.namespace:
        start = f"{after.namespace}/{start}"
    if cluster is None:
        start = f"{after.cluster}/{start}"
    token: dict[str, object] = {"v": _VERSION, "rv": found.revision, "start": start}
    if found.left is not None:
        token["left"] = found.left
    return base64.urlsafe_b64encode(orjson.dumps(token)).decode().rstrip("=")


def decode(token: str, resource: str, cluster: str | None, namespace: str | None) -> Continuation:
    """Raises StatusError 400 on anything that `encode` would not have made for the same list."""
    try:
        found = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, revision, start = found["v"], int(found["rv"]), str(found["start"])
        left = None if found.get("left") is None else int(found["left"])
        if not LATEST <= revision < 1 << 64 or not 0 <= (left or 0) < 1 << 63:
            raise ValueError("a number is out of range")
    except (binascii.Error, orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise _not_valid(f"{error}") from None
    if version != _VERSION:
        raise _not_valid(f"server does not recognize this encoded version {version}")
    if revision == 0:
        raise _not_valid("incorrect encoded start resourceVersion")
    *parts, name = start.rstrip("\0").split("/")
    at_cluster = cluster
    if cluster is None and parts:
        at_cluster = parts.pop(0)
    at_namespace = namespace
    if namespace is None:
        at_namespace = parts.pop(0) if parts else ""
    if parts or not name or at_cluster is None or "\0" in start.rstrip("\0"):
        raise _not_valid("encoded key is not of this list")
    return Continuation(revision, Key(resource, at_cluster, at_namespace or "", name), left)


def _not_valid(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
