"""kcp's warrants: users whose rights somebody has besides their own, as an extra attribute of theirs says.

    authorization.kcp.io/warrant: {"user": "bea", "groups": ["devs"], "extra": {"authentication.kcp.io/scopes": […]}}

A warrant may have warrants itself. Who acts stays who they are: only what they may do grows. Read by scopes.py wherever
rights are looked for; impersonation.py is where one may come from outside, so it decides which are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson

from apiserver.auth.user import SERVICE_ACCOUNT_PREFIX, User

WARRANT = "authorization.kcp.io/warrant"
CLUSTER_NAME = "authentication.kcp.io/cluster-name"
"""The workspace whose ServiceAccount a user is. One without it is local wherever it comes to."""
ABROAD = "authentication.kcp.io/serviceaccount"
"""On `system:anonymous`: which ServiceAccount of another workspace this is, in full. It follows from a token and is
nobody's to say."""

_MOST = 16
"""Warrants of one user that count, nested ones included."""
_LONGEST = 16 * 1024


def warranted(user: User) -> list[User]:
    """Whose rights `user` has besides, in the order in which they are told. What is no warrant gives nothing; nor does
    a ServiceAccount that is of no workspace, which would be one of every workspace."""
    found: list[User] = []
    for each in _flat(user):
        if not each.name.startswith(SERVICE_ACCOUNT_PREFIX) or each.extra.get(CLUSTER_NAME):
            found.append(each)
        if len(found) == _MOST:
            break
    return found


def said(user: User) -> list[User]:
    """Those that `user` bears itself, without the ones that these bear."""
    texts = user.extra.get(WARRANT, ())
    return [each for text in texts if len(text) <= _LONGEST and (each := _read(text)) is not None]


def text_of(user: User) -> str:
    """As an extra attribute has it."""
    extra = {key: list(values) for key, values in user.extra.items()}
    found = {"user": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return orjson.dumps({key: value for key, value in found.items() if value}).decode()


def _flat(user: User) -> Iterator[User]:
    pending = said(user)[::-1]
    while pending:
        each = pending.pop()
        yield each
        pending += said(each)[::-1]


@lru_cache(256)
def _read(text: str) -> User | None:
    try:
        found = orjson.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    name, uid, groups = found.get("user") or "", found.get("uid") or "", found.get("groups") or []
    extra = found.get("extra") or {}
    if not (isinstance(name, str) and isinstance(uid, str) and _are_texts(groups) and isinstance(extra, dict)):
        return None
    if not all(_are_texts(values) for values in extra.values()):
        return None
    return User(name, tuple(groups), uid, {key: tuple(values) for key, values in extra.items() if key != ABROAD})


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)
