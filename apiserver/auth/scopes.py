"""Where a user's names count: kcp's scopes, and ServiceAccounts outside their own workspace.

A scope is an extra attribute `cluster:a,cluster:b`: within one value any of the clusters will do, across several values
all must agree. Outside its scope a user is nobody in particular: `system:anonymous`, and its groups say only which
workspace it came from. So is a ServiceAccount in a workspace other than its own, where it must never pass for the local
account of the same name; a rule may name it in full there, as `system:kcp:serviceaccount:<cluster>:<namespace>:<name>`.
"""

from __future__ import annotations

from apiserver.auth.user import ANONYMOUS, AUTHENTICATED, SERVICE_ACCOUNT_PREFIX, User

SCOPES = "authentication.kcp.io/scopes"
CLUSTER_NAME = "authentication.kcp.io/cluster-name"
"""The workspace whose ServiceAccount the user is. One without it is local wherever it comes to."""
_ABROAD = "authentication.kcp.io/serviceaccount"
"""On `system:anonymous`: which ServiceAccount of another workspace this is, in full."""

_PREFIX = "cluster:"


def in_scope(user: User, cluster: str) -> User:
    """`user` as seen by the workspace `cluster`. Of what this returns, it returns the same again."""
    scopes = user.extra.get(SCOPES, ())
    allowed: set[str] | None = None
    for value in scopes:
        clusters = {part.strip().removeprefix(_PREFIX) for part in value.split(",")}
        allowed = clusters if allowed is None else allowed & clusters
    if allowed is not None and cluster not in allowed:
        return _nobody(sorted(allowed))
    home = _home(user)
    if home in ("", cluster):
        return user
    return _nobody([home], {_ABROAD: (_in_full(home, user),)})


def identities(user: User, cluster: str) -> tuple[User, ...]:
    """Whom RBAC may grant something, for `user` as `in_scope` gives it: itself, and a ServiceAccount also in full."""
    if user.name == ANONYMOUS:
        return user, *(User(name, (AUTHENTICATED,)) for name in user.extra.get(_ABROAD, ()))
    if _home(user) == cluster:
        return user, User(_in_full(cluster, user), (AUTHENTICATED,))
    return (user,)


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


def _in_full(home: str, user: User) -> str:
    return f"system:kcp:serviceaccount:{home}:{user.name.removeprefix(SERVICE_ACCOUNT_PREFIX)}"


def _nobody(clusters: list[str], extra: dict[str, tuple[str, ...]] | None = None) -> User:
    return User(ANONYMOUS, (AUTHENTICATED, *(f"system:cluster:{name}" for name in clusters)), extra=extra or {})
