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
    cluster name. Cluster-scoped objects have the namespace "". Names that begin with `~` are Treeplane's own records
    (see `Internal`): they are in the log like any other and in no API.
    """

    resource: str
    cluster: str
    namespace: str
    name: str


class Internal:
    """Resources that only Treeplane's own processes read."""

    WORKSPACE = "~workspaces"
    """Key(WORKSPACE, "", "", <workspace path>): see registry/tree.py for the record."""

    SUMMARY = "~summaries"
    """Key(SUMMARY, <logical cluster>, "", ""): what the status branch's summary of the workspace holds."""

    FLEET = "~fleet"
    """Key(FLEET, "", "", ""): what is being loaded and served."""

    INTENT = "~intents"
    """Key(INTENT, <logical cluster>, "", <digest of the object's key>): a write that waits for its commit; while it is
    there, nobody else's write of that object is taken. See registry/intents.py."""

    ANSWER = "~answers"
    """Key(ANSWER, "", "", <intent's id>): what became of an intent. Whoever asked takes it away."""

    KEPT_SECRETS = "~keptsecrets"
    """Key(KEPT_SECRETS, <logical cluster>, "", ""): digest of what keys/secrets/ held for the workspace when its
    Secrets were served last."""

    NODE_PORTS = "~nodeports"
    """Key(NODE_PORTS, <logical cluster>, "", <port>): [namespace, name] of the Service that holds the port."""


def storage_name(group: str, resource: str, identity: str = "") -> str:
    """The store's name of a resource (see Key.resource)."""
    base = f"{resource}.{group}" if group else resource
    return f"{base}:{identity}" if identity else base
