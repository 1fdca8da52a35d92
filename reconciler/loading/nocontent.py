"""The source of a workspace of whose content nothing is here: it comes from another repository (spec.source), and that
was not fetched yet, or is gone from this disk.

Made by sources. Who judges such a workspace holds it, or, where a repository is only looked at, says so: that nothing
is here means for nobody that something went.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from typing import NoReturn

from reconciler.layout.draft import Draft
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import ManifestSource, Piece, PieceChange, ReadOnly, all_changes
from reconciler.layout.workspacedir import WorkspaceDir

_NOWHERE = ""
"""The tree of a directory that is not here."""


def nowhere(place: WorkspaceDir) -> WorkspaceDir:
    """A workspace's directory as that of content which is not here."""
    return place._replace(tree=_NOWHERE, manifest=None, spare=(), files=())


def is_nowhere(place: WorkspaceDir) -> bool:
    return place.tree == _NOWHERE


class NoContent:
    """As layout/source.ManifestSource: nothing is declared."""

    def pieces(self, besides: Container[str] = ()) -> Iterator[Piece]:  # noqa: ARG002
        return iter(())

    def changes(self, old: ManifestSource, about: Collection[bytes] = ()) -> Iterator[PieceChange]:  # noqa: ARG002
        return all_changes(self, old)

    def line(self, manifest: Manifest, field: str = "") -> int:  # noqa: ARG002
        return manifest.line

    def mentioning(self, *texts: bytes) -> Iterator[Manifest]:  # noqa: ARG002
        return iter(())

    def editor(self, draft: Draft) -> NoReturn:  # noqa: ARG002
        raise ReadOnly("its content comes from another repository, and is not here")
