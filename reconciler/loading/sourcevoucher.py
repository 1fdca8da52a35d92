"""Who stands for what comes from a workspace's source: the one place that says so.

A tenant's repository has its own rights, of which nothing is known here, so its commits act with the authority of
whoever has the workspace: the user whom its Workspace names as its owner; else whoever stands for the commit of the
fleet that says its spec.source.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from apiserver.auth.user import AUTHENTICATED, User
from apiserver.model import marks, paths
from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key
from apiserver.model.origins import origin_in
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import View
from reconciler.loading.vouching import Voucher
from reconciler.plan.pushedby import PUSH, SERVER, SEVERAL, PushedBy

FindVoucher = Callable[[CommitRef], Voucher]
"""Who stands for a commit of the fleet."""


def voucher(view: View, record: WorkspaceRecord, known: FindVoucher) -> Voucher:
    """Of the source of a workspace that is there."""
    parent = tree.workspace_at(view, record.parent) if record.parent else None
    found = view.get(Key(WORKSPACES, parent.cluster, "", paths.base(record.path))) if parent is not None else None
    annotations = (orjson.loads(found.value)["metadata"].get("annotations") or {}) if found is not None else {}
    owner = annotations.get(marks.OWNER)
    if owner is not None:
        try:
            user = User.from_json(orjson.loads(owner))
        except ValueError:
            return Voucher(why="the owner that its Workspace names is none")
        return Voucher(PushedBy(user.name, PUSH), user)
    origin = origin_in(annotations)
    if origin is None or not origin.commit:
        return Voucher(why="it is not known which commit says its spec.source")
    stands = known(origin.commit)
    # What the server wrote for somebody he was asked about; what comes from there later he was not.
    if stands.said.how == SERVER:
        return Voucher(PushedBy(stands.said.user, PUSH), User(stands.said.user, (AUTHENTICATED,)))
    return Voucher(why="several wrote the commit that says its spec.source") if stands.said.how == SEVERAL else stands
