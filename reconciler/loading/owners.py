"""Whether a commit may touch what it touches: whose word it needs, who stands for it, and what RBAC says of him.

Called by gate, for each commit that is to be taken and for what is pushed. It reads two trees and RBAC of the
workspaces as they are served, and writes nothing. What comes of it is an Admission, which a step goes by: what was
touched without a right is held, and what is outside of all workspaces holds the commit as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apiserver.auth.pushing import may_push, may_take
from apiserver.auth.user import User
from apiserver.model import paths
from apiserver.model.commits import CommitRef
from apiserver.model.hostedrepository import URL, VERB
from apiserver.model.paths import ROOT
from apiserver.registry import tree
from apiserver.registry.reliance import Named
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import View
from reconciler.layout.errors import LayoutError
from reconciler.layout.reach import OwnedPlace, TouchedPlace
from reconciler.loading import vacated
from reconciler.loading.admission import FREE, Admission, Barred
from reconciler.loading.reliances import Reliance, Reliances
from reconciler.loading.vouching import Voucher
from reconciler.plan import deletions
from reconciler.plan.trespasses import Trespass, Trespasses
from reconciler.repository import trailers
from reconciler.repository.objects import Repository

ALLOW = "Allow-Push"
"""The trailer of a commit: commits of others that may touch what its own pusher may touch."""


class NotThere(Exception):
    """RBAC that counts is not served yet."""


def always(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class PushRights:
    """Of who stands for a commit, in the workspaces as a view of the store has them. What is found is remembered.
    `is_there`: whether that of a workspace is there already; all raise NotThere where it is not."""

    view: View
    voucher: Voucher
    is_there: Callable[[str], bool] = always
    known: dict[str, bool] = field(default_factory=dict)

    def in_any(self, places: Iterable[OwnedPlace]) -> bool:
        """Whether he may push in one of some workspaces, each where it is served, or in the workspace root."""
        if self.voucher.is_free or self.in_workspace(ROOT, ""):
            return True
        return any(self.in_workspace(place.path, place.directory) for place in places)

    def in_workspace(self, path: str, directory: str = "") -> bool:
        """`directory` "": wherever it is. One that stands elsewhere is another than the directory claims to be."""
        user = self.voucher.user
        if user is None:
            return self.voucher.is_free
        if path not in self.known:
            self.known[path] = self._may_push(path, user)
        record = tree.workspace_at(self.view, path) if directory else None
        return self.known[path] and (not directory or (record is not None and record.directory == directory))

    def at_or_above(self, path: str) -> bool:
        """In a workspace or one that it is in, wherever they stand."""
        above: str | None = path
        while above is not None:
            if self.voucher.is_free or self.in_workspace(above):
                return True
            above = paths.parent(above)
        return False

    def may_take(self, named: Named) -> bool:
        """Whether he may have another workspace rely on something. Whoever may push where it is offered gives himself
        any right there."""
        path = tree.path_named(self.view, named.path) or named.path
        if self.voucher.is_free or self.at_or_above(path):
            return True
        user = self.voucher.user
        return user is not None and self.record(path) is not None and may_take(self.view, named, user)

    def record(self, path: str) -> WorkspaceRecord | None:
        """As the workspace is served."""
        if not self.is_there(path):
            raise NotThere(path)
        return tree.workspace_at(self.view, path)

    def _may_push(self, path: str, user: User) -> bool:
        record = self.record(path)
        return record is not None and record.served and may_push(self.view, record.cluster, user)


def admission(rights: PushRights, commit: CommitRef, touched: Iterable[TouchedPlace]) -> Admission:
    """What is to be made of a commit that touches these places."""
    if rights.voucher.is_free:
        return FREE
    whole, barred = list[LayoutError](), list[Barred]()
    for each in touched:
        if rights.in_any(each.answerable):
            continue
        trespass = _trespass(rights.voucher, commit, each)
        if each.path:
            place = each.places[-1]
            barred.append(Barred(place.path, place.directory, trespass, each.spreads))
        else:
            whole.append(trespass.error)
    return Admission(tuple(whole), tuple(barred))


def _trespass(voucher: Voucher, commit: CommitRef, touched: TouchedPlace) -> Trespass:
    near = touched.answerable[0].path if touched.answerable else ROOT
    more = f" (and {touched.files - 1} more)" if touched.files > 1 else ""
    why = _missing(voucher.said.user or "whom nobody knows", near)
    return Trespass(
        commit=str(commit),
        file=touched.file,
        message=f"is touched{more} by {commit:.10}, {voucher}: {why}",
        hint=f"take it back, or have somebody who may push a commit that says `{ALLOW}: {commit}`",
        asks=near,
    )


def losses_allowed(rights: PushRights, repo: Repository, commit: CommitRef, before: CommitRef) -> Admission:
    """A commit may say that something goes (plan/deletions) where its pusher may take it away. Costs what is held where
    one says so."""
    found = trailers.said(repo, commit.id, before.id, deletions.ALLOW) if repo.has(before.id) else set()
    said = [each for each in found if deletions.is_digest(each)]
    barred = list[Barred]()
    for path, errors in tree.held(rights.view).items() if said and not rights.voucher.is_free else ():
        if not any(each in error for each in said for error in errors):
            continue
        gone = any(paths.is_within(path, top) for top in tree.fleet(rights.view).kept)
        asks = paths.parent(path) or ROOT if gone else path
        if not rights.at_or_above(asks):
            record = tree.workspace_at(rights.view, path)
            place = record.directory if record is not None else path
            who = rights.voucher.said.user or "whom nobody knows"
            message = f"is to lose something by the word of {commit:.10}, {rights.voucher}: {_missing(who, asks)}"
            hint = f"let somebody who may push there say so, or a commit that says `{ALLOW}: {commit}`"
            barred.append(Barred(path, "", Trespass(str(commit), place, message, hint, asks)))
    return Admission(barred=tuple(barred))


def relied(rights: PushRights, commit: CommitRef, found: Reliances) -> Admission:
    """What is to be made of a commit that has workspaces take something of others (reliances). What he may have taken
    is barred no more, where it was when somebody else said it."""
    barred, allows = dict[tuple[str, str], Barred](), dict[str, frozenset[str]]()
    for each in found.found:
        if rights.may_take(each.relying.named):
            known = Trespasses.in_summary(found.summary(each.path))
            names = frozenset(trespass.name for trespass in known if trespass.takes == each.relying)
            if names:
                allows[each.path] = allows.get(each.path, frozenset()) | names
        elif each.asks:
            trespass = _taken(rights.voucher, commit, each)
            barred[each.path, trespass.name] = Barred(each.path, "", trespass)
    types = {path: str(ref) for path, ref in found.types.items()}
    usual = {path for path, ref in types.items() if ref == tree.USUAL_TYPE and found.appears(path)}
    types = {path: ref for path, ref in types.items() if path not in usual}
    return Admission(barred=tuple(barred.values()), allows=allows, types=types, usual=bool(usual))


def _taken(voucher: Voucher, commit: CommitRef, each: Reliance) -> Trespass:
    named = each.relying.named
    return Trespass(
        commit=str(commit),
        file=each.file,
        message=f"{each.what}, in {commit:.10}, {voucher}: {named.missing}",
        hint=f"take it back, or have somebody who may push it, or a commit that says `{ALLOW}: {commit}`",
        asks=named.path,
        takes=each.relying,
    )


def relying(view: View) -> frozenset[str]:
    """The workspaces that are held for what they are to take, or may be for their type. Costs what is held."""
    summaries = ((path, tree.summary(view, path)) for path in tree.held(view))
    return frozenset(
        path
        for path, said in summaries
        if said.get("vouched") or any(each.takes for each in Trespasses.in_summary(said))
    )


def _missing(who: str, path: str) -> str:
    where = path if path == ROOT else f"{path} or a workspace above"
    return f"nobody gave {who} the verb `{VERB}` on {URL} in {where}"


def allowed(repo: Repository, commit: CommitRef) -> set[str]:
    """The commits that a commit itself says may touch what they touched: what it merges does not speak for whoever
    merged it."""
    return trailers.said_by(repo, commit.id, ALLOW)


def allowances(rights: PushRights, said: set[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Which workspaces that are held, or wait for one that leaves or just left, may go on, since somebody with the
    right that was lacking says so, and what is allowed there. Costs what is held and what leaves."""
    summaries = {at: tree.summary(rights.view, at) for at in {*tree.held(rights.view), *tree.leaving(rights.view)}}
    known = dict[str, Mapping[str, Any]]()
    for asked in vacated.standing(rights.view).values():
        known |= asked
    known |= summaries
    for each in summaries.values():
        known |= each.get("asked") or {}
    for path, said_of in known.items():
        found = Trespasses.in_summary(said_of)
        free = frozenset(each.name for each in found if each.commit in said and _may_allow(rights, each))
        if free:
            yield path, free


def _may_allow(rights: PushRights, trespass: Trespass) -> bool:
    """What one may do oneself."""
    return rights.may_take(trespass.takes.named) if trespass.takes else rights.at_or_above(trespass.asks)
