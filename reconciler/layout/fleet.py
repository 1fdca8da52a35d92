"""treeplane.yaml: what holds for the whole repository. Called by the loader and by `validate`.

A broken one holds the whole commit, so it is read first and strictly: an unknown field is an error, since a misspelled
safety limit must not be none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.schemas import check
from reconciler.layout.yamldoc import line_of, parse
from reconciler.repository.errors import RepositoryError
from reconciler.repository.folder import FILE as _FILE
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository
from reconciler.repository.statusaddress import StatusAddress, fault

FILE = _FILE
STATUS_BRANCH = "treeplane/status"
STATUS_PLACE = StatusAddress(STATUS_BRANCH)
TAKE, REFUSE = "Take", "Refuse"
AUTHENTICATED = "Authenticated"
UNSIGNED, HEAD, EVERY = "None", "Head", "Every"
_UNITS = {"d": "days", "h": "hours"}


@dataclass(frozen=True, slots=True)
class FleetConfig:
    """`uid` "" leaves the fleet id to the first commit. `root_access`: whom root is open to, as it is in kcp: None, or
    Authenticated. `rewrites` "" leaves it to where the repository is. `push`: what becomes of one to the hosted
    repository that would hold a workspace: TAKE or REFUSE. `owners`: whether a commit may touch a workspace only by
    whom RBAC lets push there. `verification`: which commits have to be signed: UNSIGNED, HEAD or EVERY.
    `max_deleted_workspaces` None is no limit. `status_repository` "": the status branch is in the fleet's own
    repository. `retention`: the age at which the status branch's history ends. `shared`:
    directories that programs which render may see of every workspace."""

    name: str
    uid: str = ""
    layout_version: int = 1
    status_branch: str = STATUS_BRANCH
    writes: str = "ReadOnly"
    root_access: str = "None"
    rewrites: str = ""
    push: str = TAKE
    owners: bool = False
    verification: str = UNSIGNED
    max_deleted_workspaces: int | None = None
    max_deleted_objects: int = 100
    max_deleted_share: int = 30
    status_repository: str = ""
    retention: timedelta = timedelta(days=90)
    shared: tuple[str, ...] = ()

    @property
    def status_place(self) -> StatusAddress:
        return StatusAddress(self.status_branch, self.status_repository)

    @property
    def asks_who(self) -> bool:
        """Whether it matters who pushed or signed a commit."""
        return self.owners or self.verification != UNSIGNED


def read_fleet(repo: Repository, tree_id: str) -> FleetConfig:
    """Of a commit's tree. Raises BadFile."""
    path = joined(repo.folder_at(tree_id), FILE)
    entry = repo.entry_at(tree_id, path)
    if entry is None or entry.kind != "blob":
        hint = "every fleet has one; `treeplane init` writes it"
        what = "is missing" if entry is None else "is not a regular file"
        raise BadFile([LayoutError(path, 0, 0, what, hint)])
    return parse_fleet(repo.blob(entry.id), path)


def status_place(repo: Repository, commit: str | None) -> StatusAddress:
    """Where the status branch is, as a commit says: the served one, or the first that is to be served. One that cannot
    be read, or that says nothing, leaves it at the usual place."""
    try:
        return read_fleet(repo, repo.commit(commit).tree).status_place if commit else STATUS_PLACE
    except (RepositoryError, BadFile):
        return STATUS_PLACE


def fleet_id(repo: Repository, commit: str) -> str:
    """Of a fleet that gives itself none: its first commit, and where it stands in a folder that, too, since there may
    be others beside it."""
    first, folder = repo.root_commit(commit), repo.folder_at(repo.commit(commit).tree)
    return hashlib.sha256(f"{first}/{folder}".encode()).hexdigest()[: len(first)] if folder else first


@lru_cache(maxsize=8)
def parse_fleet(data: bytes, path: str = FILE) -> FleetConfig:
    """`path`: where it stands, and so in which folder the fleet does. Raises BadFile with every fault."""
    documents = parse(data, path, positions=True)
    if not documents:
        raise BadFile([LayoutError(path, 0, 0, "is empty", "it holds one object of kind Fleet")])
    faults = [
        LayoutError(path, d.line, 0, "a second object", "it holds one object of kind Fleet") for d in documents[1:]
    ]
    faults += check("fleet", documents[0], path)
    if faults:
        raise BadFile(faults)
    value = documents[0].value
    metadata, spec = value["metadata"], value.get("spec", {})
    shared = tuple(spec.get("rendering", {}).get("shared", ()))
    faults = [
        LayoutError(path, line_of(documents[0], f"spec.rendering.shared[{number}]"), 0, f"{each} {why[0]}", why[1])
        for number, each in enumerate(shared)
        if (why := _unfit(each, shared)) is not None
    ]
    told = spec.get("status", {})
    address = told.get("repository", "")
    why = fault(address) if address else None
    if why is not None:
        line = line_of(documents[0], "spec.status.repository")
        faults.append(LayoutError(path, line, 0, f"spec.status.repository {why[0]}", why[1]))
    if faults:
        raise BadFile(faults)
    safety = spec.get("safety", {})
    return FleetConfig(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        layout_version=spec.get("layoutVersion", 1),
        status_branch=spec.get("statusBranch", STATUS_BRANCH),
        writes=spec.get("writes", "ReadOnly"),
        root_access=spec.get("rootAccess", "None"),
        rewrites=safety.get("rewrites", ""),
        push=spec.get("push", TAKE),
        owners=safety.get("owners", False),
        verification=spec.get("verification", {}).get("mode", UNSIGNED),
        max_deleted_workspaces=safety.get("maxDeletedWorkspaces"),
        max_deleted_objects=safety.get("maxDeletedObjects", 100),
        max_deleted_share=safety.get("maxDeletedShare", 30),
        status_repository=address,
        retention=_age(told.get("retention", "90d")),
        shared=tuple(
            joined(path.removesuffix(FILE).rstrip("/") if path.endswith(FILE) else "", each) for each in shared
        ),
    )


def _unfit(directory: str, shared: tuple[str, ...]) -> tuple[str, str] | None:
    """Why a directory cannot be shared, and what to do."""
    parts = directory.split("/")
    if {"", ".", ".."} & {*parts}:
        return "is no directory's path from the top of the fleet", "write it like bases/web"
    if parts[0] == "workspaces":
        return "belongs to workspaces", "move what several of them are made of out of workspaces/, and name that"
    other = next((each for each in shared if directory.startswith(f"{each}/")), None)
    if other is not None or shared.count(directory) > 1:
        return f"is shared with {other or directory} already", "name it once"
    return None


def _age(text: str) -> timedelta:
    """`90d` or `12h`."""
    return timedelta(**{_UNITS[text[-1]]: int(text[:-1])})
