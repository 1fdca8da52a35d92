"""Where a user's names count: kcp's scopes, and ServiceAccounts outside their own workspace.

A scope is an extra attribute `cluster:a,cluster:b`: within one value any of the clusters will do, across several values
all must agree. Outside its scope a user is nobody in particular: `system:anonymous`, and its groups say only which
workspace it came from. So is a ServiceAccount in a workspace other than its own, where it must never pass for the local
account of the same name; a rule may name it in full there, as `system:kcp:serviceaccount:<cluster>:<namespace>:<name>`.
What a user's warrants say (warrants.py) has scopes of its own and outlasts the user's.
"""

from __future__ import annotations

from apiserver.auth.user import (
    ANONYMOUS,
    AUTHENTICATED,
    BINDING_PREFIX,
    SERVICE_ACCOUNT_PREFIX,
    UNAUTHENTICATED,
    User,
)
from apiserver.auth.warrants import ABROAD, CLUSTER_NAME, WARRANT, warranted

SCOPES = "authentication.kcp.io/scopes"

_PREFIX = "cluster:"


def in_scope(user: User, cluster: str) -> User:
    """`user` as seen by the workspace `cluster`. Of what this returns, it returns the same again."""
    scopes = user.extra.get(SCOPES, ())
    allowed: set[str] | None = None
    for value in scopes:
        clusters = {part.strip().removeprefix(_PREFIX) for part in value.split(",")}
        allowed = clusters if allowed is None else allowed & clusters
    if allowed is not None and cluster not in allowed:
        return _nobody(user, sorted(allowed))
    home = _home(user)
    if home in ("", cluster):
        return user
    return _nobody(user, [home], {ABROAD: (in_full(home, user.name),)})


def identities(user: User, cluster: str) -> tuple[User, ...]:
    """Whom RBAC may grant something, for `user` as `in_scope` gives it: itself, a ServiceAccount also in full, and all
    whom its warrants name."""
    if not user.extra:
        return (user,)
    return tuple(named for each in _each(user, cluster) for named in _named(each, cluster))


def consumers(user: User, cluster: str) -> tuple[User, ...]:
    """The same, as a provider's RBAC knows users of a workspace that binds its export: users and groups with a prefix,
    a ServiceAccount in full alone."""
    return tuple(_prefixed(each, cluster) for each in _each(user, cluster))


def _each(user: User, cluster: str) -> list[User]:
    return [user, *(in_scope(each, cluster) for each in warranted(user))]


def _named(user: User, cluster: str) -> tuple[User, ...]:
    if user.name == ANONYMOUS:
        return user, *(User(name, (AUTHENTICATED,)) for name in user.extra.get(ABROAD, ()))
    if _home(user) == cluster:
        return user, User(in_full(cluster, user.name), (AUTHENTICATED,))
    return (user,)


def _prefixed(user: User, cluster: str) -> User:
    name, groups = user.name, user.groups
    if user.name.startswith(SERVICE_ACCOUNT_PREFIX):
        if _home(user) == cluster:
            name = in_full(cluster, user.name)
        else:  # of which workspace it is does not show
            name, groups = ANONYMOUS, tuple({AUTHENTICATED, UNAUTHENTICATED}.intersection(groups))
    elif user.name == ANONYMOUS:
        name = next(iter(user.extra.get(ABROAD, ())), name)
    return User(f"{BINDING_PREFIX}{name}", tuple(f"{BINDING_PREFIX}{group}" for group in groups))


def is_own_service_account(user: User, cluster: str) -> bool:
    return _home(user) == cluster


def home_of(user: User) -> str:
    """The workspace whose ServiceAccount the user is; "" for anybody else, and for scoped users."""
    return "" if SCOPES in user.extra else _home(user)


def _home(user: User) -> str:
    if not user.extra or not user.name.startswith(SERVICE_ACCOUNT_PREFIX):
        return ""
    homes = user.extra.get(CLUSTER_NAME, ())
    return homes[0] if len(homes) == 1 else ""


def in_full(home: str, name: str) -> str:
    """A ServiceAccount of the workspace `home`, as rules of others name it."""
    return f"system:kcp:serviceaccount:{home}:{name.removeprefix(SERVICE_ACCOUNT_PREFIX)}"


def full_name(user: User) -> str:
    """The name of a user as `in_scope` gives it, which tells a ServiceAccount of elsewhere from everybody."""
    return next(iter(user.extra.get(ABROAD, ())), user.name) if user.name == ANONYMOUS else user.name


def _nobody(user: User, clusters: list[str], extra: dict[str, tuple[str, ...]] | None = None) -> User:
    kept = {WARRANT: user.extra[WARRANT]} if WARRANT in user.extra else {}
    groups = (AUTHENTICATED, *(f"system:cluster:{name}" for name in clusters))
    return User(ANONYMOUS, groups, extra={**kept, **(extra or {})})
