"""A repository of its own that a status branch is in, or may be: a URL, whose branches are tracked beside the source's.

Called by mirror. What is wrong with it is told apart from what is wrong with the source, which may be well meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from apiserver.model.redaction import redact
from reconciler.repository.errors import RepositoryUnreadable, StatusAway
from reconciler.repository.objects import Repository
from reconciler.repository.remote import Remote, RemoteSettings
from reconciler.repository.statusaddress import barred

_NAME = "status"
"""How the names begin by which the branches are tracked."""


class StatusRemote(NamedTuple):
    """Another repository that a status branch may be in, as it is asked where its branches are."""

    remote: Remote

    def branches(self) -> list[str]:
        """Full names. Raises StatusAway."""
        with _status():
            return self.remote.branches()

    def newest(self, name: str) -> str | None:
        """Where one stands, its objects here. Raises StatusAway."""
        with _status():
            return self.remote.look([name])[0]

    def refs(self, prefix: str) -> list[str]:
        """Full names of all refs below a prefix. Raises StatusAway."""
        with _status():
            return self.remote.refs(prefix)


@contextlib.contextmanager
def _status() -> Iterator[None]:
    """What is wrong is wrong with the status branch's own repository."""
    try:
        yield
    except RepositoryUnreadable as error:
        raise StatusAway(error.what, error.hint) from error


def status_remote(mirror: Repository, address: str, source: str, settings: RemoteSettings) -> StatusRemote:
    """What treeplane.yaml of the repository at `source` names. Of `settings`, which are the source's, the patience
    counts alone. Raises StatusAway for an address that nobody goes to."""
    why = barred(address, source)
    if why:
        hint = "name another one in treeplane.yaml, or leave it out"
        raise StatusAway(f"spec.status.repository, {redact(address)}, {why}", hint)
    # A name for each address: what one had is no news of another.
    name = f"{_NAME}-{hashlib.sha256(address.encode()).hexdigest()[:12]}"
    patience = RemoteSettings(
        ask=settings.ask,
        fetch=settings.fetch,
        push=settings.push,
        stall=settings.stall,
        connect=settings.connect,
    )
    return StatusRemote(Remote(mirror, address, patience, name=name))
