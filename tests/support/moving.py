"""Directories of workspaces that move: what is committed for that."""

from __future__ import annotations

from typing import Any

from support.loadedfleet import A, LoadedFleet

C = "workspaces/root/c"
HEAD = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
Files = dict[str, Any]


def stating(uid: str) -> str:
    return f"{HEAD}metadata: {{uid: {uid}}}\n"


def uid_of(fleet: LoadedFleet, path: str) -> str:
    return str(fleet.workspace(path)["metadata"]["uid"])


def moving(fleet: LoadedFleet, old: str, new: str, uid: str) -> Files:
    """What `git mv` and a line in workspace.yaml come to; `uid` "": without that line."""
    here = fleet.repo.files(fleet.repo.head)
    inside = {name: text for name, text in here.items() if name.startswith(f"{old}/")}
    out: Files = {old: None} | {new + name[len(old) :]: text for name, text in inside.items()}
    return out | ({f"{new}/workspace.yaml": stating(uid)} if uid else {})


def move(fleet: LoadedFleet, old: str = A, new: str = C, **files: str) -> None:
    path = old.removeprefix("workspaces/").replace("/", ":")
    fleet.commit(moving(fleet, old, new, uid_of(fleet, path)) | files)
