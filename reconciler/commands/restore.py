"""`treeplane restore`: a commit that puts a workspace's own files back to what they were, made in a clone.

Called by the command line. Which files these are, and where the workspace was then, is review/restoration's; what the
commit would do is foreseen before it is made, as `treeplane diff` does, and what would be held is not committed. No
server is asked, and nothing is pushed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from apiserver.model import paths
from reconciler.commands.clone import WorkTree, clone_of
from reconciler.commands.failure import Failure
from reconciler.commands.rendering import renderer_of_user
from reconciler.commands.restored import RestoreDone
from reconciler.commands.workcommit import commit_files, require_clean
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import UNSIGNED, read_fleet
from reconciler.layout.restoring import CannotRestore
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspace import declaration
from reconciler.plan.deletions import ALLOW
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree
from reconciler.review.ends import Ends, proposed
from reconciler.review.made import review
from reconciler.review.restoration import Restoration, Restoring
from reconciler.review.revisions import BadRange
from reconciler.signatures.signedcommit import is_signed
from reconciler.statusbranch.recorded import RecordedFleet

TRAILER = "Restored-From"
"""Names the commit that a commit of ours goes back to."""
_NEVER = 1
"""Exit code: it cannot be put back so."""
_DIGITS = 10


@dataclass(frozen=True, slots=True)
class RestoreAsked:
    """`name`: the workspace's directory, or its path. `revision`: what it is to be as. `predecessor`: also where that
    was another workspace of its path. `allowed`: hashes of deletions. `dry`: nothing is committed. `folder`: see
    clone.opened."""

    name: str
    revision: str
    predecessor: bool = False
    allowed: tuple[str, ...] = ()
    dry: bool = False
    folder: str = ""


def restore(asked: RestoreAsked) -> RestoreDone:
    try:
        with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
            return _Restore(asked, Path(scratch)).run()
    except CannotRestore as error:
        raise Failure(str(error), error.hint, _NEVER) from error
    except BadRange as error:
        raise Failure(str(error), error.hint, 2) from error
    except (RepositoryError, BadFile) as error:
        raise Failure(str(error), code=2) from error


@dataclass
class _Restore:
    asked: RestoreAsked
    scratch: Path
    clone: WorkTree = field(init=False)
    found: Restoration = field(init=False)

    def run(self) -> RestoreDone:
        self.clone = WorkTree(*clone_of(_above(self.asked.name), self.asked.folder))
        self.commit = self.clone.commit(self.asked.revision)
        ends = proposed(self.clone.repo, self.scratch / "repo", self._made)
        files = self.found.made.files
        if not files:
            return RestoreDone(self.found, self.commit, None, notes=tuple(self._notes()))
        require_clean(self.clone, files)
        with closing(renderer_of_user()) as renders:
            told = review(ends, self.scratch, renders)
        notes = (*self._notes(),)
        if told.holds or self.asked.dry:
            return RestoreDone(self.found, self.commit, told, dry=self.asked.dry, notes=notes)
        made = commit_files(self.clone, ends.repo, files, self._message())
        return RestoreDone(self.found, self.commit, told, made, notes=(*notes, *self._unsigned(ends, made)))

    def _made(self, repo: Repository, head: str, recorded: RecordedFleet | None) -> str:
        """The commit, as nobody made it yet."""
        restoring = Restoring(repo, head, recorded)
        path = self._path(restoring.tree, repo)
        self.found = restoring.to(path, self.commit, predecessor=self.asked.predecessor)
        message = "\n\n".join(self._message()) + "\n"
        return commit_tree(repo, self.found.made.tree, [head], message, int(time.time()))

    def _path(self, tree: WorkspaceTree, repo: Repository) -> str:
        """Of the workspace that was named; by a directory that is no more too, where it was one then."""
        name = self.asked.name
        if not Path(name).exists() and paths.is_path(name):
            return name
        directory = self.clone.named(Path(name))
        then = tree.beside(repo.commit(self.commit).tree)
        place = tree.at(directory) or then.at(directory)
        if place is None:
            text = f"{name} is no workspace, neither now nor in {self.commit:.{_DIGITS}}"
            raise Failure(text, "name its directory, or its path", 2)
        return place.path

    def _message(self) -> list[str]:
        """In paragraphs. The last is of trailers alone, as git reads them."""
        trailers = [f"{TRAILER}: {self.commit}"]
        trailers += [f"{ALLOW}: {' '.join(self.asked.allowed)}"] if self.asked.allowed else []
        return [f"Restore {self.found.path} as of {self.commit[:_DIGITS]}", "\n".join(trailers)]

    # -- what whoever reads this should know

    def _notes(self) -> Iterator[str]:
        found = self.found
        if found.was.path != found.path or found.was.directory != found.directory:
            yield f"it was {found.was.path} then, in {found.was.directory}"
        if found.comes_back and found.renewed:
            yield (
                "it is served no more, so it comes back as a new workspace: with another logical cluster and new UIDs, "
                "without what was made through the API, and without workspaces below it"
            )
        elif found.comes_back:
            yield "it is still served, as far as is recorded here: then it never went, and keeps all that it has"
        yield from self._pinned()

    def _pinned(self) -> Iterator[str]:
        repo = self.clone.repo
        head = repo.resolve("HEAD")
        place = WorkspaceTree(repo, repo.commit(head).tree).at(self.found.directory) if head is not None else None
        if place is None or place.manifest is None:
            return
        try:
            pin = declaration(repo.blob(place.manifest.id), place.manifest_path).pin
        except BadFile:
            yield f"{place.manifest_path} cannot be read, so a pin that it may have had is not kept"
            return
        if pin is not None and not pin.is_over(time.time()):
            yield (
                f"it stays pinned to {pin.commit:.{_DIGITS}}: what is put back is served once it is resumed "
                f"(treeplane resume {self.found.directory})"
            )

    def _unsigned(self, ends: Ends, made: str) -> Iterator[str]:
        """Where the fleet asks for signatures."""
        try:
            config = read_fleet(ends.repo, ends.repo.commit(ends.base.commit.id).tree)
        except BadFile:
            return
        if config.verification != UNSIGNED and not is_signed(self.clone.repo.raw_commit(made)):
            yield (
                "the commit is not signed, and the fleet asks for signatures (spec.verification): sign it before you "
                "push it: git commit --amend --no-edit -S"
            )


def _above(name: str) -> Path:
    """A directory that is there, to find the clone by."""
    here = Path(name)
    if not here.exists() and paths.is_path(name):
        return Path()
    here = here.absolute()
    return next(each for each in (here, *here.parents) if each.is_dir())
