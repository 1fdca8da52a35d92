"""The history of a fleet as tests ask for it: the commands' own way, without the command line."""

from __future__ import annotations

from pathlib import Path

from support.fleetrepo import FleetRepo

from reconciler.commands.history import HistoryAsked, blame, log
from reconciler.history.result import FleetLog, ObjectBlame, WorkspaceStep


def logged(repo: FleetRepo, *words: str, most: int = 0, namespace: str = "", keys: Path | None = None) -> FleetLog:
    return log(HistoryAsked(repo.path, words, namespace, keys=keys), most)


def blamed(repo: FleetRepo, *words: str, workspace: str = "", keys: Path | None = None) -> ObjectBlame:
    return blame(HistoryAsked(repo.path, words, workspace=workspace, keys=keys))


def set_by(found: ObjectBlame) -> dict[str, str]:
    """By field, the commit that set it."""
    return {each.field: found.commits[each.commit][0].id for each in found.fields}


def words(step: WorkspaceStep) -> set[str]:
    """Of a workspace what became of its objects: `configured ConfigMap default/app`."""
    return {f"{each.change} {each.object}" for each in step.objects}
