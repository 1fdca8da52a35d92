"""Acting as someone else: the `Impersonate-*` headers, allowed by the RBAC verb `impersonate` in the workspace.

Called by the endpoints between authentication and authorization. What a workspace's administrator may impersonate ends
at that workspace: the resulting user carries a scope, which the Authorizer honours, so that a check made in another
workspace (binding its export, say) does not see borrowed names. So do the warrants that are sent with it, and whom they
name is impersonated like anybody: it takes the same rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import unquote

from apiserver.auth.authn import Headers, authenticated
from apiserver.auth.denial import denial
from apiserver.auth.scopes import SCOPES
from apiserver.auth.user import (
    ANONYMOUS,
    AUTHENTICATED,
    PRIVILEGED,
    SERVICE_ACCOUNT_PREFIX,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    AccessDecision,
    Attributes,
    User,
)
from apiserver.auth.warrants import ABROAD, CLUSTER_NAME, WARRANT, said, text_of, warranted
from apiserver.auth.workspaces import is_workspaces
from apiserver.model.errors import StatusError, bad_request

_EXTRA = b"impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
_DEEPEST = 8
"""Warrants within warrants."""


class _Asked(NamedTuple):
    name: str
    groups: tuple[str, ...]
    uid: str
    extra: dict[str, tuple[str, ...]]


def impersonated(user: User, headers: Headers, cluster: str, authorize: Callable[[Attributes], AccessDecision]) -> User:
    """The user to go on with: `user` itself where no such header is sent.

    `authorize` judges `user` in `cluster`. Raises StatusError 403 (with the first thing that may not be impersonated)
    and 400 (other headers without Impersonate-User, and one that is there twice).
    """
    asked = _asked(headers)
    if asked is None:
        return user
    found = _as_asked(asked, cluster)
    if not user.is_master:
        found = _at_home(found, cluster, user.extra.get(SCOPES, ()))
    borrowed = [User(asked.name, asked.groups), *warranted(found)]
    asked_groups = [group for each in borrowed for group in each.groups]
    if not user.is_master and PRIVILEGED.intersection(asked_groups).difference(user.groups):
        raise StatusError(403, "Forbidden", "impersonation is not allowed for the requestor", {})
    for attributes in _needed(asked, borrowed):
        decision = authorize(attributes)
        if not decision.allowed:
            raise denial(user, attributes, decision.reason)
    taken = next(filter(is_workspaces, (*(each.name for each in borrowed), *asked_groups)), "")
    if taken:
        why = f"{taken} is a workspace's name, which nobody may bear: ask with a SubjectAccessReview what it may do"
        raise StatusError(403, "Forbidden", why, {})
    return _grouped(found)


def _as_asked(asked: _Asked, cluster: str) -> User:
    extra, groups = dict(asked.extra), asked.groups
    extra.pop(ABROAD, None)
    if asked.name.startswith(SERVICE_ACCOUNT_PREFIX):
        extra[CLUSTER_NAME] = (cluster,)
        if not groups:
            groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{_account(asked.name)[0]}")
    return User(asked.name, groups, asked.uid, extra)


def _at_home(user: User, cluster: str, scopes: tuple[str, ...], depth: int = 0) -> User:
    """`user` as somebody of this workspace alone, within the `scopes` of who asks, and so all whose warrants it bears.
    What nests deeper than any does is left out."""
    extra = {**user.extra, SCOPES: (*user.extra.get(SCOPES, ()), *scopes, f"cluster:{cluster}")}
    if CLUSTER_NAME in extra:
        extra[CLUSTER_NAME] = (cluster,)
    if WARRANT in extra:
        found = said(user) if depth < _DEEPEST else []
        extra[WARRANT] = tuple(text_of(_at_home(each, cluster, scopes, depth + 1)) for each in found)
    return User(user.name, user.groups, user.uid, extra)


def _grouped(user: User) -> User:
    """In one of the two groups that tell users from nobody."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    if user.name == ANONYMOUS:
        return User(user.name, (*user.groups, UNAUTHENTICATED), user.uid, user.extra)
    return authenticated(user)


def _asked(headers: Headers) -> _Asked | None:
    sent = [(header, raw.decode("latin-1")) for header, raw in headers if header.startswith(b"impersonate-")]
    if not sent:
        return None
    name, uid = (_only(sent, header) for header in (b"impersonate-user", b"impersonate-uid"))
    groups = [value for header, value in sent if header == b"impersonate-group"]
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in sent:
        if header.startswith(_EXTRA):
            key = unquote(header.removeprefix(_EXTRA).decode("latin-1")).lower()
            extra[key] = (*extra.get(key, ()), value)
    if name:
        return _Asked(name, tuple(groups), uid, extra)
    if groups or uid or extra:
        raise bad_request("impersonation of groups, uid or extra needs the header Impersonate-User")
    return None


def _only(sent: list[tuple[bytes, str]], header: bytes) -> str:
    """A proxy that names its client is not to be outdone by what that client sends before or behind it."""
    values = [value for each, value in sent if each == header]
    if len(values) > 1:
        raise bad_request(f"the header {header.decode().title()} is there more than once")
    return "".join(values)


def _needed(asked: _Asked, borrowed: Iterable[User]) -> list[Attributes]:
    """What the caller must be allowed to do. `borrowed`: who is asked for, by names and groups."""
    found = []
    for each in borrowed:
        if each.name.startswith(SERVICE_ACCOUNT_PREFIX):
            namespace, name = _account(each.name)
            account = Attributes(
                "impersonate", version="v1", resource="serviceaccounts", namespace=namespace, name=name
            )
            found.append(account)
        else:
            found.append(Attributes("impersonate", version="v1", resource="users", name=each.name))
        found += [Attributes("impersonate", version="v1", resource="groups", name=group) for group in each.groups]
    if asked.uid:
        found.append(Attributes("impersonate", _AUTHENTICATION, "v1", "uids", name=asked.uid))
    for key, values in asked.extra.items():
        found += [Attributes("impersonate", _AUTHENTICATION, "v1", "userextras", key, name=value) for value in values]
    return found


def _account(name: str) -> tuple[str, str]:
    namespace, _, account = name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    return namespace, account
