"""A fleet whose writes are commits, with the API's write path on one side and the committer on the other.

For unit tests: threads of this process, no server. `serve` is run by a thread as the reconciler's process does it. In
that process the same thread loads commits: here whoever loads, or looks at the fleet as a whole, waits until the thread
is through with its round, as a write is answered before the end of that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.loadedfleet import A, LoadedFleet

from apiserver.admission.committing import CommitSink
from apiserver.model import marks
from apiserver.model.commits import own
from apiserver.registry import deletion, rest
from apiserver.registry.commits import Commits
from apiserver.registry.rest_options import Collection, DeleteOptions, Outcome, WriteOptions
from apiserver.registry.tree import FleetRecord
from reconciler.loading.committer import Branch, Committer
from reconciler.loading.keptsecrets import KeptSecrets
from reconciler.loading.loader import Loaded
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.desired import Desired
from reconciler.repository.library import Sign
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.writer import StatusWriter

Object = dict[str, Any]

MADE = f"{A}/_objects/default/configmaps/made.yaml"
"""Where `a_configmap` stands once it is created in root:a."""

WRITES_COMMIT = TREEPLANE_YAML + "spec: {writes: Commit}\n"


class CommitFleet(LoadedFleet):
    """Writes are by `user`; `kind` is given as its store name. `sign`: what the server's own commits are signed
    with."""

    sign: Sign | None = None

    def __init__(
        self, directory: Path, repo: FleetRepo | None = None, keys: Path | None = None, renders: Renders = NOWHERE
    ) -> None:
        super().__init__(directory, repo, keys, renders)
        self.commits = Commits(self.store)
        self.published: list[str] = []
        self.committer = self.new_committer()
        self._turn = threading.RLock()
        self._bell = threading.Event()
        self._end = False
        self._thread: threading.Thread | None = None

    def new_committer(self) -> Committer:
        """As after a restart, together with a new loader."""
        self.loader = self.new_loader()
        desired = Desired(self.mirror, sign=self.sign)
        branch = Branch(desired, self.mirror.repository, self._catch_up, self.published.append)
        return Committer(self.store, self.loader, branch, KeptSecrets(self.store, self.keys, self.secrets))

    def _catch_up(self) -> None:
        if self.loader.is_under_way:
            self.loader.overtake(own(self.repo.head))
        else:
            self.load()

    def serve(self) -> None:
        """From now on what waits is served."""
        self.store.subscribe(self._bell.set)
        self._bell.set()
        self._thread = threading.Thread(target=self._serve, name="committer", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._end:
            self._bell.wait()
            self._bell.clear()
            with self._turn:
                self._round()

    def _round(self) -> None:
        if self.committer.waiting():
            self.committer.serve()

    def load(self, recorded: RecordedFleet | None = None) -> Loaded:
        with self._turn:
            return super().load(recorded)

    def recheck(self, paths: Iterable[str] = ()) -> None:
        with self._turn:
            super().recheck(paths)

    def fleet(self) -> FleetRecord:
        with self._turn:
            return super().fleet()

    def held(self, loaded: Loaded | None = None) -> dict[str, list[str]]:
        with self._turn:
            return super().held(loaded)

    def publish(self, writer: StatusWriter | None = None) -> str:
        with self._turn:
            return super().publish(writer)

    def close(self) -> None:
        self._end = True
        self._bell.set()
        if self._thread is not None:
            self._thread.join()
        super().close()

    # -- the API's side

    def at(self, path: str, resource: str, user: str = "alice") -> Collection:
        record = self.record(path)
        kinds = self.loader._catalog.kinds(record.cluster)
        kind = kinds.of_storage(resource)
        assert kind is not None, f"{resource} is not served in {path}"
        return Collection(
            self.store,
            kind,
            kinds,
            record.cluster,
            marks={marks.CLUSTER: record.cluster},
            origin={marks.ORIGIN: marks.RUNTIME},
            sink=CommitSink(self.store, self.commits, record, user),
        )

    def create(self, path: str, resource: str, obj: Object, user: str = "alice") -> Object:
        at = self.at(path, resource, user)
        namespace = (obj["metadata"].get("namespace") or "default") if at.kind.namespaced else ""
        return rest.create(at, namespace, obj, WriteOptions("test")).obj

    def change(
        self, path: str, resource: str, name: str, *, sub: str = "", user: str = "alice", **fields: Any
    ) -> Object:
        """A patch that sets top-level fields."""
        at = self.at(path, resource, user)
        namespace = "default" if at.kind.namespaced else ""
        return rest.patch(at, namespace, name, lambda live: {**live, **fields}, WriteOptions("test"), sub).obj

    def remove(self, path: str, resource: str, name: str, user: str = "alice") -> Outcome:
        at = self.at(path, resource, user)
        return deletion.delete(at, "default" if at.kind.namespaced else "", name, DeleteOptions())

    # -- git's side

    def log(self) -> list[str]:
        """Authors and subjects of what was committed through the API, oldest first."""
        repo = self.mirror.repository
        chain = repo.first_parents(self.repo.commits[-1], self.repo.head) or []
        found = [repo.commit(commit) for commit in chain]
        return [f"{c.author.partition(' <')[0]}: {c.message.splitlines()[0]}" for c in found]

    def tree(self) -> dict[str, str]:
        """Every file of the branch's head."""
        return self.repo.files(self.repo.head)


def a_configmap(name: str = "made", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"a": "b"}}
