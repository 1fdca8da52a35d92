"""Who may read a workspace as a commit has it: `/commits/<rev>/clusters/<path>/…`.

Called by kube, before anybody looks for the commit and once more when it is there. RBAC of what is served now decides,
as if the workspace were asked for as it is: a right that was taken away is gone for the past, too. That is worth
nothing where another workspace stood at the path, or none stands there now: what was there is read by who may read the
same in root and `get` the path `/commits` there.
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.auth.scopes import in_scope
from apiserver.auth.user import AccessDecision, Attributes, User
from apiserver.endpoints.commitviews import FoundCommit
from apiserver.endpoints.paths import RequestPath, RequestRoute, Scope
from apiserver.endpoints.realms import Realms, RealmWorld
from apiserver.model.errors import StatusError
from apiserver.model.paths import ROOT
from apiserver.registry.tree import workspace_at

PAST = Attributes("get", path="/commits")
"""What somebody has to be allowed in root who reads workspaces that are not there any more."""
READING = frozenset({"get", "list", "head"})
NOT_HERE = frozenset({
    RequestRoute.HEALTH, RequestRoute.ISSUER, RequestRoute.JWKS, RequestRoute.METRICS, RequestRoute.STATUS,
    RequestRoute.RECONCILE,
})  # fmt: skip
"""What says something of the server, and nothing of a commit."""


@dataclass(frozen=True, slots=True)
class PastReader:
    """Somebody who asks. `now`: the workspace that stands at the path, or one that is nowhere; `bearer`: whom they act
    for; `asked`: what they want to do."""

    realms: Realms
    now: RealmWorld
    bearer: User
    asked: Attributes

    def own(self) -> AccessDecision:
        """Whether they may in the workspace that is there now."""
        user = in_scope(self.bearer, self.now.identity) if self.bearer.extra else self.bearer
        return self.now.authorize(user, self.asked)

    def everywhere(self) -> bool:
        """Whether they may whichever workspace it was."""
        root = self.realms.world(RequestPath(Scope.WORKSPACE, ROOT, "", RequestRoute.INDEX))
        user = in_scope(self.bearer, root.identity) if self.bearer.extra else self.bearer
        return all(root.authorize(user, each).allowed for each in (PAST, self.asked))

    def world(self, found: FoundCommit, place: RequestPath, *, own: bool) -> RealmWorld:
        """The workspace as the commit has it. Raises StatusError 404 where it was not there, and just so where another
        was, for who may not read that."""
        record = workspace_at(found.realm.store, self.path(place))
        same = record is not None and own and record.cluster == self.now.cluster
        if record is None or not (same or self.everywhere()):
            text = f'workspace "{self.path(place)}" was not there at commit {found.filled.commit:.10}'
            raise StatusError(404, "NotFound", text)
        return RealmWorld(found.realm, Scope.WORKSPACE, record.cluster, record)

    def path(self, place: RequestPath) -> str:
        """Of the workspace that is meant, which may be named by its logical cluster."""
        return self.now.path or place.world


def warnings(found: FoundCommit, world: RealmWorld) -> list[str]:
    """What whoever reads should know: that the statuses are of another commit, and that the content is."""
    filled, record, said = found.filled, world.record, []
    if not filled.recorded:
        said.append(f"nothing is recorded of commit {filled.commit:.10} or one before it: there are no statuses")
    elif filled.recorded != filled.commit:
        said.append(
            f"commit {filled.commit:.10} was not recorded as served: statuses are those of {filled.recorded:.10}"
        )
    if record is not None and record.served and record.errors:
        text = f"{record.path} is held at commit {filled.commit:.10} and shown as of {record.commit:.10}"
        said.append(f"{text}: {record.errors[0]}")
    return said
