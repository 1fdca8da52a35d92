"""A fleet whose status branch has a repository of its own, as unit tests have it, and servers that begin from it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import LoadedFleet

from reconciler.commands.installation import Installation
from reconciler.commands.lookout import NOTHING_SAID, Lookout, StatusSaid
from reconciler.commands.report import Report
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.start import Beginning, Start
from reconciler.commands.teller import Teller
from reconciler.layout.fleet import STATUS_BRANCH
from reconciler.repository.mirror import Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.statusaddress import StatusAddress

TREEPLANE = "treeplane.yaml"
REF = f"refs/heads/{STATUS_BRANCH}"


def recording_in(address: str, more: str = "") -> str:
    """A treeplane.yaml that names a repository for the status branch; "" for none."""
    said = [f"status: {{repository: '{address}'}}"] if address else []
    said += [more] if more else []
    return TREEPLANE_YAML + (f"spec: {{{', '.join(said)}}}\n" if said else "")


class StatusRepo:
    """A bare repository, which may be away for a while."""

    def __init__(self, path: Path) -> None:
        self.path = path
        subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True)

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    @property
    def repo(self) -> Repository:
        return Repository(self.path)

    @property
    def head(self) -> str | None:
        return self.repo.ref(REF)

    def leaves(self) -> None:
        self.path.rename(self.path.with_suffix(".away"))

    def comes_back(self) -> None:
        self.path.with_suffix(".away").rename(self.path)

    def refuses(self, *, words: str = "protected branch") -> None:
        """Takes no push, and says so."""
        hook = self.path / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit 1\n")
        hook.chmod(0o755)

    def takes(self) -> None:
        (self.path / "hooks" / "pre-receive").unlink(missing_ok=True)

    def emptied(self) -> None:
        shutil.rmtree(self.path)
        subprocess.run(["git", "init", "--quiet", "--bare", str(self.path)], check=True)


def serve(
    directory: Path, status: StatusRepo | None, files: dict[str, str] | None = None, *, close: bool = True
) -> LoadedFleet:
    """A fleet that was served from its beginning, and recorded there; in its own repository for None."""
    fleet = LoadedFleet(directory)
    address = status.url if status is not None else ""
    fleet.mirror.record_at(StatusAddress(STATUS_BRANCH, address))
    fleet.begin({TREEPLANE: recording_in(address), **(files or {})})
    fleet.publish()
    if close:
        fleet.close()
    return fleet


class Server:
    """One that begins with a data directory, which may be empty. `troubles`: what it told, after which it ends."""

    def __init__(self, source: Path | str, data: Path, said: StatusSaid = NOTHING_SAID) -> None:
        data.mkdir(exist_ok=True)
        self.troubles: list[str] = []
        self.source, self.data = str(source), data
        self.mirror = Mirror(data, self.source, "main", STATUS_BRANCH)
        self.teller = Teller(Report())
        self.teller.trouble = self._trouble  # type: ignore[method-assign]
        self.said = said
        self.lookout = Lookout(self.mirror, self.teller, said)

    def _trouble(self, text: str, kind: object = None) -> None:
        self.troubles.append(text)
        self.lookout.stop.set()

    def begin(self) -> Beginning | None:
        """None where it waits, with what `troubles` says."""
        heads = self.lookout.first()
        if heads is None:
            return None
        settings = ReconcileSettings(
            self.data,
            self.data,
            source=self.source,
            url="u",
            local_url="u",
            command=("treeplane", "up"),
            new_identities=self.said.anew,
        )
        start = Start(settings, self.mirror, Installation(self.data), self.teller, first=True)
        beginning = start.begin(heads)
        start.begins_anew(beginning)
        return beginning


def begin(source: Path | str, data: Path) -> Beginning:
    """As a server that does not have to wait."""
    server = Server(source, data)
    beginning = server.begin()
    assert beginning is not None, server.troubles
    return beginning
