"""`treeplane log`, `blame` and `trace`: who changed what, and where a copy comes from. In a clone, without a server.

Called by the command line. What was typed historywords makes out; all else is history/'s.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from apiserver.auth.keys import KeysError
from reconciler.commands.clone import opened
from reconciler.commands.failure import Failure
from reconciler.commands.historywords import AskedClone, HistoryWords, read_words
from reconciler.commands.rendering import renderer_of_user
from reconciler.history.blame import blame as blamed
from reconciler.history.copies import given
from reconciler.history.find import directory_of, nothing_there, object_in, place_of
from reconciler.history.fleet import FleetHistory, open_history
from reconciler.history.kinds import AskedObjects
from reconciler.history.log import log as logged
from reconciler.history.people import People, ServerKeys
from reconciler.history.result import FleetLog, NotFound, ObjectBlame, ObjectTrace
from reconciler.history.trace import Tracing
from reconciler.layout.errors import BadFile
from reconciler.layout.tree import ROOT
from reconciler.layout.yamldoc import parse
from reconciler.rendering.rendering import Renders
from reconciler.repository.errors import RepositoryError
from reconciler.repository.folder import joined
from reconciler.review.revisions import BadRange
from reconciler.review.telling.harmless import plain

FAILED = 4
_WHAT = "who changed what"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class HistoryAsked:
    """`directory`: where one is; `words`: as typed; `namespace`, `workspace`: "" where nothing is said; `keys`: a
    server's keys/, or what is known of it. `folder`: see clone.opened."""

    directory: Path
    words: tuple[str, ...]
    namespace: str = ""
    workspace: str = ""
    keys: Path | None = None
    folder: str = ""


def log(asked: HistoryAsked, most: int) -> FleetLog:
    return _answered(lambda renders: _log(asked, most, renders))


def blame(asked: HistoryAsked) -> ObjectBlame:
    return _answered(lambda renders: _blame(asked, renders))


def trace(asked: HistoryAsked, target: str) -> tuple[ObjectTrace, ...]:
    """Of an object that is named, with the name of a sync target."""
    return _answered(lambda renders: (_trace(asked, target, renders),))


def trace_copies(asked: HistoryAsked, text: bytes) -> tuple[ObjectTrace, ...]:
    """Of objects as they stand on a cluster: YAML or JSON."""
    return _answered(lambda renders: _trace_copies(asked, text, renders))


def _answered(answer: Callable[[Renders], _T]) -> _T:
    try:
        with closing(renderer_of_user()) as renders:
            return answer(renders)
    except NotFound as nothing:
        raise Failure(plain(str(nothing)), plain(nothing.hint), 1) from nothing
    except BadRange as error:
        raise Failure(plain(str(error)), plain(error.hint), 2) from error
    except KeysError as error:
        raise Failure(plain(str(error)), code=2) from error
    except RepositoryError as error:
        raise Failure(plain(str(error)), code=FAILED) from error
    except yaml.YAMLError as error:
        raise Failure(
            "what the status branch says cannot be read", "fetch it anew: git fetch origin", FAILED
        ) from error


def _clone(asked: HistoryAsked) -> AskedClone:
    repo, top = opened(asked.directory, asked.folder)
    return AskedClone(repo, top, asked.directory.absolute())


def _people(history: FleetHistory, asked: HistoryAsked) -> People:
    return People(history, ServerKeys.of(asked.keys) if asked.keys is not None else ServerKeys())


def _log(asked: HistoryAsked, most: int, renders: Renders) -> FleetLog:
    clone = _clone(asked)
    typed = read_words(clone, asked.words)
    history = open_history(clone.repo, typed.revision, _WHAT, renders)
    tree = history.tree(history.repo.commit(history.head).tree)
    where = asked.workspace or typed.path
    if where:
        directory = directory_of(tree, clone.named(where))
    else:
        owner = tree.owner(f"{clone.within('.')}/x")
        directory = owner.directory if owner is not None else ""
    objects = AskedObjects(typed.kind, typed.name, asked.namespace)
    found = logged(history, _people(history, asked), directory, objects, most)
    if not found.entries and not history.without:
        if directory and tree.at(directory) is None:
            raise nothing_there(tree, clone.named(where))
        if objects.name:
            place = place_of(tree, directory or tree.root)
            object_in(history, history.repo.commit(history.head), place, objects)
    return found


def _blame(asked: HistoryAsked, renders: Renders) -> ObjectBlame:
    clone = _clone(asked)
    typed = read_words(clone, asked.words).of_one()
    if ".." in typed.revision:
        raise BadRange(f"{typed.revision} is a range", "name the one commit as of which the object is told")
    history = open_history(clone.repo, typed.revision, _WHAT, renders)
    head = history.repo.commit(history.head)
    place = place_of(history.tree(head.tree), _where(clone, asked, typed))
    found = object_in(history, head, place, AskedObjects(typed.kind, typed.name, asked.namespace))
    return blamed(history, _people(history, asked), found)


def _trace(asked: HistoryAsked, target: str, renders: Renders) -> ObjectTrace:
    clone = _clone(asked)
    typed = read_words(clone, asked.words).of_one()
    if typed.revision:
        raise BadRange(f"{typed.revision} is a commit", "a trace is of what is served: leave it out")
    history = open_history(clone.repo, "", _WHAT, renders)
    tracing = Tracing(history, _people(history, asked))
    tree = history.tree(history.repo.commit(history.head).tree)
    path = place_of(tree, _where(clone, asked, typed)).path
    return tracing.asked(path, AskedObjects(typed.kind, typed.name, asked.namespace), target)


def _trace_copies(asked: HistoryAsked, text: bytes, renders: Renders) -> tuple[ObjectTrace, ...]:
    clone = _clone(asked)
    try:
        documents = parse(text, "what was given")
    except BadFile as bad:
        raise BadRange(str(bad.errors[0]), "give objects as `kubectl get -o yaml` prints them") from bad
    copies = [*given(each.value for each in documents)]
    if not copies:
        raise BadRange("no object was given", "give one as `kubectl get -o yaml` prints it")
    history = open_history(clone.repo, "", _WHAT, renders)
    tracing = Tracing(history, _people(history, asked))
    return tuple(tracing.given(each, asked.workspace) for each in copies)


def _where(clone: AskedClone, asked: HistoryAsked, typed: HistoryWords) -> str:
    said = asked.workspace or typed.path
    if said:
        return clone.named(said)
    inside = clone.within(".")
    root = joined(clone.repo.folders[0], ROOT)
    return inside if f"{inside}/".startswith(f"{root}/") else "root"
