"""Directories of workspaces that move: what is committed for that."""

from __future__ import annotations

import json
from typing import Any

import yaml
from support.loadedfleet import A, LoadedFleet

from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import tree

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


def moved_beside(fleet: LoadedFleet, number: int) -> Files:
    """Some workspace of the head is called `<name>0` from then on, or no more; nothing where it is not there, or
    another one is. What its workspace.yaml says besides stays."""
    files = fleet.repo.files(fleet.repo.head)
    there = sorted(name.removesuffix("/workspace.yaml") for name in files if name.endswith("/workspace.yaml"))
    there = [each for each in there if each != "workspaces/root"]
    old = there[number % len(there)] if there else ""
    new = old[:-1] if old.endswith("0") else f"{old}0"
    above, _, name = old.removeprefix("workspaces/").replace("/", ":").rpartition(":")
    parent = tree.workspace_at(fleet.store, above)
    found = fleet.store.get(Key(WORKSPACES, parent.cluster, "", name)) if parent is not None else None
    if found is None or new in there:
        return {}
    said = yaml.safe_load(files[f"{old}/workspace.yaml"]) or yaml.safe_load(HEAD)
    metadata = {field: each for field, each in (said.get("metadata") or {}).items() if field != "name"}
    uid = json.loads(found.value)["metadata"]["uid"]
    stated = {f"{new}/workspace.yaml": json.dumps({**said, "metadata": {**metadata, "uid": uid}})}
    return moving(fleet, old, new, "") | stated
