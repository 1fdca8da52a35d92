"""Which branch of the source is the fleet's status branch, where this server does not know.

Called at a start without a data directory, and by `validate`. treeplane.yaml of the *served* commit names the branch,
and a commit that names another is held, so what the head says is not what counts. Looked at are the names that
treeplane.yaml ever had in the head's history. A branch counts if its commit is a record that says so itself: the commit
that was served names this very branch, and it is of the desired branch that is asked for (or of one that is gone, since
that may have been renamed).

Somebody who may push can have made a branch that counts, and nothing tells it from the one in use. So of several none
does (Undecided): to begin from a forged one would be worse than not to begin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import FILE, STATUS_BRANCH, parse_fleet, status_branch
from reconciler.layout.yamldoc import parse
from reconciler.repository.errors import RepositoryError
from reconciler.repository.folder import joined
from reconciler.repository.mirror import SERVED_REF, STATUS_REF
from reconciler.repository.objects import Repository
from reconciler.statusbranch import format
from reconciler.statusbranch.claim import claim_of


class Branches(Protocol):
    """Where the branches are: a mirror, or a repository on this machine."""

    def branches(self) -> list[str]:
        """Names of all, full or short."""

    def newest(self, name: str, /) -> str | None:
        """Where one stands, its objects at hand."""


class Candidate(NamedTuple):
    """A branch that counts, its newest commit, and the commit that was served by then."""

    name: str
    commit: str
    served: str


class Undecided(Exception):
    """Several branches count."""

    def __init__(self, candidates: list[Candidate]) -> None:
        super().__init__(", ".join(each.name for each in candidates))
        self.candidates = candidates


def in_use(repo: Repository, head: str, branch: str, source: Branches) -> str:
    """The name of the status branch of the fleet that is served from `branch`, whose head this is; the head's own word
    where no branch counts. Raises Undecided, and RepositoryError where the source has to be asked and does not
    answer."""
    known = names(repo, head)
    if len(known) == 1:
        return known[0]
    found = list(_candidates(repo, head, known, branch, source))
    if len(found) > 1:
        raise Undecided(found)
    return found[0].name if found else status_branch(repo, head)


def names(repo: Repository, head: str) -> list[str]:
    """All names that treeplane.yaml gave the status branch in the history of a commit, the newest first."""
    found: dict[str, None] = {}
    for blob in (blob for folder in repo.folders for blob in repo.versions(head, joined(folder, FILE))):
        try:
            found[parse_fleet(repo.blob(blob)).status_branch] = None
        except BadFile:
            continue  # it never was served
    return list(found) or [STATUS_BRANCH]


def served_before(mirror: Repository) -> str:
    """The commit that this server served last, as its mirror says; "" where that was lost, or there was none."""
    served, status = mirror.ref(SERVED_REF), mirror.ref(STATUS_REF)
    if served is not None and mirror.has(served):
        return served
    return served_by(mirror, status) if status is not None and mirror.has(status) else ""


def served_by(repo: Repository, status: str) -> str:
    """The commit that a status commit says was served; "" if it is no status commit."""
    parents = repo.commit(status).parents
    said = repo.trailers(status).get(format.TRAILER, "")
    return said if parents and said == parents[-1] and repo.has(said) else ""


def described(repo: Repository, candidate: Candidate) -> str:
    """What a candidate says of itself, for who has to decide."""
    writer = claim_of(repo, candidate.commit).writer or "an unnamed server"
    return f"{candidate.name} (commit {candidate.commit:.10} by {writer}, when {candidate.served:.10} was served)"


def _candidates(repo: Repository, head: str, known: list[str], branch: str, source: Branches) -> Iterator[Candidate]:
    there = {name.removeprefix("refs/heads/") for name in source.branches()}
    for name in known:
        commit = source.newest(name) if name in there else None
        served = served_by(repo, commit) if commit is not None else ""
        if commit is None or not served:
            continue
        facts = _facts(repo, commit)
        folder, of = str(facts.get("path") or ""), facts.get("branch") or branch
        if not _names(repo, served, name, folder) or not (folder in repo.folders or is_moved(repo, folder, head)):
            continue
        if facts.get("id") and (not branch or of == branch or of not in there):
            yield Candidate(name, commit, served)


def is_moved(repo: Repository, folder: str, head: str) -> bool:
    """Whether a fleet that stood in `folder` may stand where it is looked for by now: there is none there any more."""
    return repo.entry_at(repo.commit(head).tree, joined(folder, FILE)) is None


def _names(repo: Repository, served: str, name: str, folder: str) -> bool:
    """Whether a commit names a status branch, by what stands in a folder of it."""
    entry = repo.entry_at(repo.commit(served).tree, joined(folder, FILE))
    try:
        return entry is not None and parse_fleet(repo.blob(entry.id)).status_branch == name
    except (BadFile, RepositoryError):
        return False


def _facts(repo: Repository, commit: str) -> dict[str, Any]:
    """fleet.yaml of what may be a stranger's; {} where that is none."""
    entry = repo.entry_at(repo.commit(commit).tree, format.FLEET)
    if entry is None or entry.kind != "blob":
        return {}
    try:
        documents = parse(repo.blob(entry.id), format.FLEET)
    except BadFile:
        return {}
    return documents[0].value if len(documents) == 1 else {}
