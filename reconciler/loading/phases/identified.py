"""Which workspace a directory is, where its workspace.yaml states a UID: the one that it has.

A move has been made by then (loading/moves), so whoever states the UID of a workspace that moved here has it. Where a
fleet is loaded for the first time nobody knows of an earlier one, and what is stated counts.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.model.identity import object_uid
from apiserver.model.keys import Key
from apiserver.registry import codec
from reconciler.layout.errors import LayoutError
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.clusterobject import workspace_key
from reconciler.loading.moves import SAID
from reconciler.loading.phases.judgement import Judgement


def identify(at: Judgement) -> None:
    """Comes when the record is known."""
    _identify(at, _stored)


def identify_again(at: Judgement) -> None:
    """The same of one that is brought back."""
    _identify(at, _recorded)


def _identify(at: Judgement, known: Callable[[Judgement, Key], str]) -> None:
    case, site = at.case, at.grounds.site
    parent = at.grounds.world.record(at.record.parent) if at.record.parent else None
    if case.directory is None or parent is None or site.guesses:
        return
    said = site.sources.stated_uid(case.tree, case.directory)
    if not said:
        return
    key = workspace_key(at.record, parent.cluster)
    own = known(at, key) or object_uid(site.fleet, key, at.record.origin)
    adopted = at.grounds.adopted
    if said == own:
        return
    if adopted is not None and not at.record.served and adopted.setdefault(said, case.path) == case.path:
        at.gathered.adopts = said
        return
    at.gathered.problems.append(_error(at, case.directory, said, own))


def _stored(at: Judgement, key: Key) -> str:
    there = at.grounds.store.get(key)
    return codec.uid_of(there.value) if there is not None else ""


def _recorded(at: Judgement, key: Key) -> str:
    assert at.case.recorded is not None
    return str(((at.case.recorded.residue(key) or {}).get("metadata") or {}).get("uid") or "")


def _error(at: Judgement, directory: WorkspaceDir, said: str, own: str) -> LayoutError:
    place = directory.manifest_path
    line = at.grounds.site.sources.line_in_workspace(at.case.tree, directory, "metadata.uid")
    if at.record.served:
        return LayoutError(place, line, 0, f"{SAID}{said}, but this workspace's is {own}", "leave it out")
    text = f"{SAID}{said}, and no workspace of that UID moves here with this commit"
    hint = "one whose directory goes in the same commit can move: put that back, and use `treeplane mv`"
    return LayoutError(place, line, 0, text, f"{hint}; or leave metadata.uid out, and it is a new workspace")
