"""Where a user's names count: kcp's scopes, an extra attribute `cluster:a,cluster:b`.

Within one value any of the clusters will do, across several values all must agree. Outside its scope a user is nobody
in particular: `system:anonymous`, and its groups say only which workspace it came from.
"""

from __future__ import annotations

from apiserver.auth.user import AUTHENTICATED, User

SCOPES = "authentication.kcp.io/scopes"
CLUSTER_NAME = "authentication.kcp.io/cluster-name"
"""The workspace whose ServiceAccount the user is."""

_PREFIX = "cluster:"


def in_scope(user: User, cluster: str) -> User:
    """`user` as seen by the workspace `cluster`."""
    scopes = user.extra.get(SCOPES, ())
    allowed: set[str] | None = None
    for value in scopes:
        clusters = {part.strip().removeprefix(_PREFIX) for part in value.split(",")}
        allowed = clusters if allowed is None else allowed & clusters
    if allowed is None or cluster in allowed:
        return user
    return User("system:anonymous", (AUTHENTICATED, *(f"system:cluster:{name}" for name in sorted(allowed))))


def is_own_service_account(user: User, cluster: str) -> bool:
    return user.extra.get(CLUSTER_NAME) == (cluster,)
