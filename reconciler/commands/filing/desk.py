"""Where a command's files are put together: on top of a commit of the fleet, with what is to stand in `keys/`.

    with desk_for(asked) as desk:
        place = desk.workspace("root:shop")
        desk.write(f"{place.directory}/access.yaml", data)
        desk.keep_secret(place, secret)
        filed = desk.file(["Let ann in"])

Nothing is written before `file`, and nothing at all in a dry run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apiserver.model.errors import StatusError
from reconciler.commands import fleetfolder
from reconciler.commands.clone import WorkTree, clone_of, top_of
from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import Filed, FiledFile, FilingAsked
from reconciler.commands.filing.keysfiles import KeysFiles, change_of
from reconciler.commands.filing.machine import cloned, default_data_dir, hosted, push
from reconciler.commands.filing.safety import require_directories, require_inside, require_no_links
from reconciler.commands.workcommit import commit_files, require_clean
from reconciler.layout import edit
from reconciler.layout.draft import Draft
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import FILE
from reconciler.layout.place import file_name, folder, place
from reconciler.layout.secrets import read_secrets
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.sealedsecrets import creation_for, sealed_file
from reconciler.plugin.meant import question
from reconciler.repository.difference import difference
from reconciler.repository.errors import RepositoryError
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository
from reconciler.repository.write import edit_tree

Object = dict[str, Any]

_KIND = "secrets"


class Desk:
    """`clone`: the work tree that is committed to, None in a dry run on the server's machine. `machine`: the data
    directory whose server gets it pushed, None where that is the user's to do. `keys`: of the server, if it is here."""

    def __init__(self, repo: Repository, clone: WorkTree | None, machine: Path | None, keys: Path | None) -> None:
        head = repo.resolve("HEAD")
        if head is None:
            raise Failure(f"{repo.path} has no commit yet", "begin with: treeplane init, and commit what it wrote", 2)
        self._repo, self._clone, self._machine = repo, clone, machine
        self.tree = WorkspaceTree(repo, repo.commit(head).tree)
        self.draft = Draft(repo, self.tree.tree_id)
        self.keys = KeysFiles(keys)
        self._looked: list[str] = []

    # -- what there is

    def workspace(self, path: str) -> WorkspaceDir:
        """Raises Failure, with what may have been meant, where there is none of that path."""
        found = self.tree.find(path)
        if found is not None:
            return found
        near = question(path, (each.path for each in self.tree.workspaces()))
        raise Failure(f"there is no workspace {path}", near or "treeplane ws tree shows which there are", 2)

    def read(self, path: str) -> bytes | None:
        """A file of the repository, as it will be; None where there is none."""
        return self.draft.read(path)

    # -- what is to be

    def write(self, path: str, data: bytes | None) -> None:
        """A file of the repository; None: it goes. Raises Failure for a path that leads elsewhere."""
        require_inside(path)
        require_directories(self.draft, path)
        if self._clone is not None:
            require_no_links(self._clone.top, path)
        self._looked.append(path)
        self.draft.write(path, data)

    def keep_secret(self, workspace: WorkspaceDir, secret: Object) -> None:
        """A Secret of a workspace: in the fleet, encrypted, where its `.sops.yaml` says for whom; else in keys/."""
        metadata = secret["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace") or "default"
        file = self._sealed_at(workspace, name, namespace)
        try:
            creation = creation_for(self.draft, file)
            if creation is not None:
                self.write(file, sealed_file(file, secret, creation))
                return
        except StatusError as error:
            raise Failure(str(error), "mend it, and try again") from error
        path, index = self._secret_at(workspace, name, namespace)
        there = self.keys.read(path)
        try:
            data = edit.new(path, secret)[0] if there is None else edit.replace(there, path, index, secret)
        except BadFile as error:
            raise Failure(str(error), "mend the file, or move it away") from error
        self.keys.put(path, data)

    def drop_secret(self, workspace: WorkspaceDir, name: str, namespace: str = "default") -> None:
        """The end of one that `keep_secret` wrote."""
        file = self._sealed_at(workspace, name, namespace)
        if self.read(file) is not None:
            self.write(file, None)
        path, index = self._secret_at(workspace, name, namespace)
        there = self.keys.read(path)
        if there is not None or self.keys.directory is None:
            self.keys.put(path, edit.remove(there, path, index) if there is not None else None)

    def _sealed_at(self, workspace: WorkspaceDir, name: str, namespace: str) -> str:
        return place(folder(workspace.directory, _KIND, namespace), name)

    def _secret_at(self, workspace: WorkspaceDir, name: str, namespace: str) -> tuple[str, int]:
        """The file below keys/ that has a Secret or is to have it, and which of its objects it is."""
        top = self.keys.directory
        if top is not None:
            for each in read_secrets(top, workspace.path).by_workspace.get(workspace.path, []):
                if (each.namespace or "default", each.name) == (namespace, name):
                    return str(Path(each.path).relative_to(top)), each.index
        within = "" if namespace == "default" else f"{file_name(namespace)}_/"
        return f"secrets/{workspace.path}/{within}{file_name(name)}.yaml", 0

    # -- and it is

    def planned(self) -> Filed:
        """What `file` would do."""
        files = [self._filed(path) for path in dict.fromkeys(self._looked)]
        return Filed([*files, *self.keys.planned()], dry=True)

    def file(self, message: Sequence[str]) -> Filed:
        """Writes all of it: keys first, since what is committed may need them. `message`: the commit's, in paragraphs.
        Raises Failure."""
        clone, files = self._clone, [self._filed(path) for path in dict.fromkeys(self._looked)]
        if clone is None:
            raise AssertionError("a dry run writes nothing")
        changes = list(self._changes())
        require_clean(clone, changes)
        self.keys.require()
        kept, notes = self.keys.write()
        filed = Filed([*files, *kept], notes=notes)
        if changes:
            filed.commit = commit_files(clone, self._repo, changes, message)
            if self._machine is not None:
                filed.pushed, filed.answer = push(clone, self._machine, self._keys_of_machine())
        return filed

    def _changes(self) -> Iterator[Any]:
        if self.draft.files:
            tree = edit_tree(self._repo, self.draft.base, self.draft.files)
            yield from difference(self._repo, self.draft.base, tree)

    def _filed(self, path: str) -> FiledFile:
        before = Draft(self._repo, self.draft.base).read(path)
        after = self.draft.read(path)
        return FiledFile(path, change_of(before, after), after)

    def _keys_of_machine(self) -> Path:
        assert self.keys.directory is not None
        return self.keys.directory


@contextmanager
def desk_for(asked: FilingAsked) -> Iterator[Desk]:
    """In the clone that is named, or around the working directory; else on the server's machine. Raises Failure."""
    try:
        with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch, _desk(asked, Path(scratch)) as desk:
            yield desk
    except (RepositoryError, BadFile) as error:
        raise Failure(str(error), code=2) from error


@contextmanager
def _desk(asked: FilingAsked, scratch: Path) -> Iterator[Desk]:
    data_dir, keys = _machine(asked)
    clone = WorkTree(*clone_of(asked.clone, asked.folder)) if asked.clone is not None else _clone_around(asked.folder)
    if clone is not None:
        if not _is_fleet(clone.repo):
            file = joined(clone.repo.folders[0], FILE)
            raise Failure(
                f"{clone.top} is no fleet: its HEAD has no {file}", "name a clone of the fleet's repository", 2
            )
        yield Desk(clone.repo, clone, None, keys)
        return
    if data_dir is None:
        raise Failure(
            "this is neither a clone of the fleet's repository nor the server's machine",
            "go to a clone, or name one: --clone DIRECTORY; on the server's machine name what it serves from: "
            "--data-dir DIRECTORY",
            2,
        )
    if asked.dry:
        repo = Repository(hosted(data_dir))
        fleetfolder.settle(repo, None, repo.path, asked.folder)
        yield Desk(repo, None, data_dir, keys)
        return
    if keys is None:
        raise Failure(f"{data_dir} has no keys/", "name them: --keys DIRECTORY", 2)
    with cloned(data_dir, keys, scratch, asked.folder) as temporary:
        yield Desk(temporary.repo, temporary, data_dir, keys)


def _machine(asked: FilingAsked) -> tuple[Path | None, Path | None]:
    """Data directory and keys, as far as they are here."""
    usual = default_data_dir()
    data_dir = asked.data_dir or (usual if usual.is_dir() else None)
    for option, directory in (("--data-dir", asked.data_dir), ("--keys", asked.keys)):
        if directory is not None and not directory.is_dir():
            raise Failure(f"{option}: there is no directory {directory}", "name the one that the server uses", 2)
    keys = asked.keys or (data_dir / "keys" if data_dir is not None else None)
    return data_dir, keys.absolute() if keys is not None and keys.is_dir() else None


def _clone_around(folder: str) -> WorkTree | None:
    """None where one is in none of a fleet's."""
    if top_of(Path()) is None:
        return None
    found = WorkTree(*clone_of(Path(), folder))
    return found if folder or _is_fleet(found.repo) else None


def _is_fleet(repo: Repository) -> bool:
    head = repo.resolve("HEAD")
    return head is not None and repo.entry_at(repo.commit(head).tree, joined(repo.folders[0], FILE)) is not None
