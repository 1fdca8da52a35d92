"""How an object is addressed in the store.

Order of keys is order of fields: the objects of one workspace are one range, and so are those of a resource across all
workspaces.
"""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """One object.

    `resource` is the store's name of a resource: `configmaps`, `deployments.apps`, and for a bound API
    `widgets.example.io:<identity hash>`, so that two providers of one name never share storage. `cluster` is a logical
    cluster name. Cluster-scoped objects have the namespace "". Names that begin with `~` are Treeplane's own objects
    (see `Internal`): they are in the log like any other and in no API.
    """

    resource: str
    cluster: str
    namespace: str
    name: str


class Internal:
    """Resources that only Treeplane's own processes read, and some of them follow. What nobody follows stands in tables
    (tables.py)."""

    WORKSPACE = "~workspaces"
    """Key(WORKSPACE, <logical cluster>, "", ""): where the workspace is; see `placed` of registry/tree.py."""

    INTENT = "~intents"
    """Key(INTENT, <logical cluster>, "", <digest of the object's key>): a write that waits for its commit; while it is
    there, nobody else's write of that object is taken. See registry/intents.py."""

    PROPOSED = "~proposed"
    """Key(PROPOSED, <logical cluster>, "", <digest of the object's key and the author>): a write that waits to be put
    on the branch of its author's proposal. See registry/intents.py."""

    AWAITED = "~awaited"
    """Key(AWAITED, <logical cluster>, "", "") → its workspace's path: what that may have waited for has gone, so it is
    to be judged again. See reconciler/loading/awaited.py."""

    HOME = "~homes"
    """Key(HOME, <logical cluster>, "", "") → a userInfo, as JSON: who asks for a home workspace, until it is made. See
    endpoints/homeworkspaces.py and reconciler/controllers/homes.py."""

    OUTCOME = "~outcomes"
    """Key(OUTCOME, "", "", <commit>) → what became of a commit, as JSON (reconciler/plan/outcome.py): noted for who
    tells it to others, as long as it is one of the last. See reconciler/loading/outcomes.py."""

    ANSWER = "~answers"
    """Key(ANSWER, "", "", <intent's id>): what became of an intent. Whoever asked takes it away."""


def storage_name(group: str, resource: str, identity: str = "") -> str:
    """The store's name of a resource (see Key.resource)."""
    base = f"{resource}.{group}" if group else resource
    return f"{base}:{identity}" if identity else base


def definition_of(storage: str) -> str:
    """The name of the CustomResourceDefinition that brings a resource of that store name: as kcp has it, those of the
    core group end in `core`."""
    return storage if "." in storage else f"{storage}.core"


def defined(definition: str) -> str:
    """The store name of what a CustomResourceDefinition of that name brings."""
    resource, _, group = definition.partition(".")
    return resource if group == "core" else definition
