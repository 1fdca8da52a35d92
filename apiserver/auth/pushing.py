"""Whether RBAC of a workspace lets somebody push what concerns it, or what takes something of it.

Asked by the reconciler for each commit, of workspaces as they are served (reconciler/loading/owners). It goes by what
git declares and what ships alone: an object that only the API knows of would be gone after a recovery, and what was
taken by its word then held.
"""

from __future__ import annotations

from typing import Any

from apiserver.auth.binding import asked_about, is_everybodys
from apiserver.auth.bootstrap import CLUSTER_ROLE_BINDINGS
from apiserver.auth.policy import RBACObjects, compile_policy
from apiserver.auth.rbac import stored_objects
from apiserver.auth.requiredgroups import belongs, requirements
from apiserver.auth.scopes import identities, in_scope
from apiserver.auth.user import Attributes, User
from apiserver.model import marks
from apiserver.model.hostedrepository import URL, VERB
from apiserver.model.keys import Key
from apiserver.registry.reliance import Named
from apiserver.registry.tree import workspace_named
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
    return _grants(view, cluster, user, _PUSH)


def may_take(view: View, named: Named, user: User) -> bool:
    """Whether `user` may have another workspace rely on this: what ships with Treeplane is everybody's, and for all
    else it takes the verb (Named.verb), by RBAC of the workspace that offers it, without access there. What is not
    there and what one may not are one answer; what is yet to come may be named by whom RBAC names it to."""
    if user.is_master:
        return True
    provider = workspace_named(view, named.path)
    if provider is None or not provider.served:
        return False
    found = view.get(Key(named.resource, provider.cluster, "", named.name))
    if found is not None and is_everybodys(found.value):
        return True
    user = in_scope(user, provider.cluster)
    return user.is_master or _grants(view, provider.cluster, user, asked_about(named))


def is_declared(obj: dict[str, Any]) -> bool:
    """Whether git declares an object, or it ships: one that a recovery has, too."""
    return _origin(obj) not in _NOT_DECLARED


def _grants(view: View, cluster: str, user: User, asked: Attributes) -> bool:
    policy = compile_policy(_declared(stored_objects(view, cluster)), CLUSTER_ROLE_BINDINGS)
    return any(policy.granted(each, asked) is not None for each in identities(user, cluster))


def _declared(found: RBACObjects) -> RBACObjects:
    kinds = found.cluster_roles, found.roles, found.cluster_role_bindings, found.role_bindings
    return RBACObjects(*([obj for obj in kind if is_declared(obj)] for kind in kinds))


def _origin(obj: dict[str, Any]) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(marks.ORIGIN, ""))
