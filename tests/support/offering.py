"""Two tenants on one branch, one of whom offers what the other would have.

`root:b` is bob's: it offers the export `widgets` and the type `gold`. `root:a` is alice's.
"""

from __future__ import annotations

from support.moving import HEAD
from support.ownedfleet import OwnedFleet, granting
from support.widgets import export, schema

from apiserver.model.storagenames import EXPORTS, TYPES

R = "workspaces/root"
UNBOUND = "no permission to bind to export root:b:widgets"
UNUSED = "unable to use workspace type root:b:gold: missing verb='use' permission on workspacetype"


def kind(name: str, spec: str = "{}") -> str:
    return f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def of_type(name: str, path: str = "") -> str:
    return f"{HEAD}spec: {{type: {{name: {name}{f', path: {path!r}' if path else ''}}}}}\n"


def target(*exports: str) -> str:
    named = ", ".join(f"{{path: 'root:b', export: {export}}}" for export in exports)
    return (
        "apiVersion: workload.kcp.io/v1alpha1\nkind: SyncTarget\nmetadata: {name: t}\n"
        f"spec: {{supportedAPIExports: [{named}]}}\n"
    )


OFFERED = {
    f"{R}/b/schema.yaml": schema(),
    f"{R}/b/export.yaml": export(),
    f"{R}/b/gold.yaml": kind("gold"),
}


def allow(fleet: OwnedFleet, *users: str, only: str = "") -> None:
    """By bob, in root:b."""
    fleet.push(
        "bob",
        {
            f"{R}/b/bind.yaml": granting("bind", EXPORTS, *users, name="bind", only=only),
            f"{R}/b/use.yaml": granting("use", TYPES, *users, name="use"),
        },
    )
