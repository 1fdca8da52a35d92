"""What a workspace's directory declares, however it says so: the one way in which manifests are read and written back.

A directory may hold plain manifests (loading/plainfiles), or what a program makes manifests of. Whoever needs manifests
asks the directory's ManifestSource (loading/sources finds it): which there are, each with its origin; what differs from
another tree; where a field stands; and whether and how an object is written back. How many files that takes, and what
is remembered of them, is the source's own.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from typing import Any, NamedTuple, Protocol

from reconciler.layout.draft import Draft
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest

Object = dict[str, Any]


class Piece(NamedTuple):
    """What a source reads as one: a file, or all that a program makes. `name`: the path that the origins of its
    manifests name. `problems`: what is wrong with it; then there may be no manifests. `generator`: the program, ""
    where a file says it. `lasting`: whether it is read in the same way whenever that is tried; False where that could
    not be found out now."""

    name: str
    manifests: tuple[Manifest, ...]
    problems: tuple[LayoutError, ...] = ()
    generator: str = ""
    lasting: bool = True


class PieceChange(NamedTuple):
    """A piece that came (`old` None), went (`new` None) or may say something else."""

    name: str
    old: Piece | None
    new: Piece | None


class ReadOnly(Exception):
    """The source writes nothing back; the text says why, and what to do instead."""


class NotWritten(ReadOnly):
    """The same of one piece, or one place, while others of the source are written to."""


class Editor(Protocol):
    """Writes objects back into a draft. Everything raises BadFile where a file is written so that it cannot be, and
    NotWritten where there is none to write."""

    def find(self, name: str) -> Iterator[Manifest]:
        """The manifests of a piece, as the draft has it by now."""

    def replace(self, manifest: Manifest, value: Object) -> bool:
        """`manifest`, one that was found, says `value` from now on. Whether that changes a file."""

    def remove(self, manifest: Manifest) -> bool:
        """It says nothing any more."""

    def add(self, name: str, value: Object) -> bool:
        """The piece of this name, which may be new, says `value` too."""


class ManifestSource(Protocol):
    """Of one workspace's directory in one tree. Manifests share their values: copy before changing."""

    def pieces(self, besides: Container[str] = ()) -> Iterator[Piece]:
        """All but those with names in `besides`."""

    def changes(self, old: ManifestSource, about: Collection[bytes] = ()) -> Iterator[PieceChange]:
        """What differs from another tree's source of the same workspace, at the cost of the difference. Applied to the
        pieces of `old` it gives those of this one. `about`: at least what has one of these texts in it, as `mentioning`
        has it, before or now; the rest need not be read."""

    def line(self, manifest: Manifest, field: str = "") -> int:
        """The line of a field like `spec.replicas`, or of the manifest where it cannot be told; 0 where it has none."""

    def mentioning(self, *texts: bytes) -> Iterator[Manifest]:
        """At least the manifests that have one of the texts (see manifest.may_say) in them, however it is written; the
        others need not be read. What cannot be read is left out."""

    def editor(self, draft: Draft) -> Editor:
        """For a draft that begins with this source's tree. Raises ReadOnly."""


def all_changes(new: ManifestSource, old: ManifestSource) -> Iterator[PieceChange]:
    """`changes` of two sources that have nothing in common but the workspace: both are read whole."""
    before = {piece.name: piece for piece in old.pieces()}
    for piece in new.pieces():
        was = before.pop(piece.name, None)
        if was != piece:
            yield PieceChange(piece.name, was, piece)
    yield from (PieceChange(name, piece, None) for name, piece in before.items())


def manifests(source: ManifestSource) -> Iterator[Manifest]:
    """All that can be read."""
    for piece in source.pieces():
        yield from piece.manifests
