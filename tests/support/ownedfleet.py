"""A fleet whose workspaces have owners, and pushes to it by name.

For unit tests of who may touch what. `root:a` is alice's, `root:b` bob's, `root` carol's; `dave` may push and has
nothing.
"""

from __future__ import annotations

from pathlib import Path

from support.fleetrepo import Files
from support.loadedfleet import BEGINNING, LoadedFleet

from apiserver.auth.user import AUTHENTICATED, MASTERS, User
from reconciler.loading.heads import BranchSettings
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.vouching import Vouching
from reconciler.repository.pushrecords import PushRecord, PushRecords
from reconciler.signatures.verifier import Verifier

OWNERS_YAML = """\
apiVersion: treeplane.dev/v1alpha1
kind: Fleet
metadata: {name: test}
spec: {safety: {owners: true}}
"""


def pushers(*users: str, name: str = "pushers") -> str:
    """RBAC that lets some users push."""
    subjects = ", ".join(f"{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}" for user in users)
    return f"""\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules: [{{nonResourceURLs: [/git/fleet.git], verbs: [push]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
subjects: [{subjects}]
"""


def granting(verb: str, resource: str, *users: str, name: str = "takers", only: str = "") -> str:
    """RBAC that gives some users `bind` on exports (`apiexports.apis.kcp.io`) or `use` of types, of one name or all."""
    plural, _, group = resource.partition(".")
    names = f", resourceNames: [{only}]" if only else ""
    subjects = ", ".join(f"{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}" for user in users)
    return f"""\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules: [{{apiGroups: [{group}], resources: [{plural}], verbs: [{verb}]{names}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
subjects: [{subjects}]
"""


OWNED: dict[str, str] = {
    **BEGINNING,
    "treeplane.yaml": OWNERS_YAML,
    "workspaces/root/pushers.yaml": pushers("carol"),
    "workspaces/root/a/pushers.yaml": pushers("alice"),
    "workspaces/root/b/pushers.yaml": pushers("bob"),
}
ADMIN = User("admin", (MASTERS, AUTHENTICATED))


class MadeUpPushes(PushRecords):
    """Records that no hook wrote."""

    def __init__(self) -> None:
        super().__init__(None)
        self.made: dict[str, PushRecord] = {}

    def of(self, commit: str) -> PushRecord | None:
        return self.made.get(commit)


class OwnedFleet(LoadedFleet):
    """`push("alice", {path: text})` commits, says that alice pushed it, and loads."""

    def __init__(self, directory: Path, like: LoadedFleet | None = None, *, local: bool = False) -> None:
        self.pushes = like.pushes if isinstance(like, OwnedFleet) else MadeUpPushes()
        self.vouching = Vouching(self.pushes, Verifier(None), directory / "signers", local)
        super().__init__(directory, *((like.repo, like.keys) if like is not None else ()))

    def new_loader(self, branch: BranchSettings | None = None) -> Loader:
        return super().new_loader(branch or BranchSettings(vouching=self.vouching))

    def begin(self, files: Files | None = None) -> Loaded:
        return self.commit({**OWNED, **(files or {})})

    def push(self, user: str | User, files: Files, message: str = "Change") -> Loaded:
        self.pushed(user, files, message)
        return self.load()

    def pushed(self, user: str | User, files: Files, message: str = "Change") -> str:
        """The same without loading it; the commit."""
        old = self.repo.head
        new = self.repo.commit(files, message)
        who = user if isinstance(user, User) else User(user, (AUTHENTICATED,))
        self.pushes.made[new] = PushRecord(old, who.as_json())
        return new
