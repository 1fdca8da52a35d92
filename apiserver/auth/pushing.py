"""Whether RBAC of a workspace lets somebody push what concerns it.

Asked by the reconciler for each commit, of workspaces as they are served (reconciler/loading/owners). It goes by what
git declares and what ships alone: an object that only the API knows of would be gone after a recovery, and what was
taken by its word then held.
"""

from __future__ import annotations

from typing import Any

from apiserver.auth.bootstrap import CLUSTER_ROLE_BINDINGS
from apiserver.auth.policy import RBACObjects, compile_policy
from apiserver.auth.rbac import stored_objects
from apiserver.auth.requiredgroups import belongs, requirements
from apiserver.auth.scopes import identities, in_scope
from apiserver.auth.user import Attributes, User
from apiserver.model import marks
from apiserver.model.hostedrepository import URL, VERB
from apiserver.storage.protocol import View

_PUSH = Attributes(VERB, path=URL)
_NOT_DECLARED = frozenset({marks.RUNTIME, marks.REMOVED})


def may_push(view: View, cluster: str, user: User) -> bool:
    """Whether RBAC of the workspace with that logical cluster name gives `user` the verb `push` on /git/fleet.git; who
    is in system:masters has it everywhere, and who lacks a group that the workspace requires nowhere in it. Costs what
    the workspace has of RBAC."""
    user = in_scope(user, cluster)
    if user.is_master:
        return True
    if not belongs(user, identities(user, cluster), requirements(view, cluster)):
        return False
    policy = compile_policy(_declared(stored_objects(view, cluster)), CLUSTER_ROLE_BINDINGS)
    return any(policy.granted(each, _PUSH) is not None for each in identities(user, cluster))


def _declared(found: RBACObjects) -> RBACObjects:
    kinds = found.cluster_roles, found.roles, found.cluster_role_bindings, found.role_bindings
    return RBACObjects(*([obj for obj in kind if _origin(obj) not in _NOT_DECLARED] for kind in kinds))


def _origin(obj: dict[str, Any]) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(marks.ORIGIN, ""))
