"""A drill finds nothing in what a server recorded, whatever happened to it, and finds what somebody else put there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.drills import drilled, recorded_files, rewritten, saying
from support.happenings import EVENTS, PUSHES, Happening, History, much
from support.loadedfleet import LoadedFleet

from reconciler.commands.failure import Failure
from reconciler.statusbranch import format

HISTORIES = st.lists(
    st.tuples(st.sampled_from([*PUSHES, *EVENTS]), st.integers(0, 23), st.booleans()), min_size=1, max_size=14
)
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]

Files = dict[str, bytes]
Edited = dict[str, bytes | None]


@contextmanager
def happened(factory: pytest.TempPathFactory, history: History) -> Iterator[Happening]:
    fleet = LoadedFleet(factory.mktemp("drills") / "fleet")
    try:
        happening = Happening(fleet)
        happening.begin()
        for name, number, load in history:
            happening.happen(name, number, load=load)
        fleet.load()
        yield happening
    finally:
        fleet.close()


def assert_nothing_found(fleet: LoadedFleet, keys: Path | None) -> None:
    found = drilled(fleet, keys)
    assert (found.found.differences, found.found.lost) == ((), {})


@settings(max_examples=25, suppress_health_check=SLOW)
@given(history=HISTORIES, keys=st.booleans())
@example(history=[("remove many", 0, True), ("finalizer", 1, True), ("unbind", 1, True)], keys=True)
@example(history=[("relocate", 0, True), ("pin", 4, True), ("break", 1, True)], keys=False)
def test_a_drill_finds_nothing_in_what_a_server_recorded(
    tmp_path_factory: pytest.TempPathFactory, history: History, keys: bool
) -> None:
    with happened(tmp_path_factory, history) as happening:
        happening.fleet.publish()
        assert_nothing_found(happening.fleet, happening.fleet.keys if keys else None)


@settings(max_examples=20, suppress_health_check=SLOW)
@given(history=HISTORIES, number=st.integers(0, 953))
@example(history=[("nothing", 0, True)], number=4)
@example(history=[("fill a mount", 0, False), ("record and die", 20, False)], number=49)
def test_nor_in_what_was_recorded_in_the_middle_of_a_load(
    tmp_path_factory: pytest.TempPathFactory, history: History, number: int
) -> None:
    with happened(tmp_path_factory, history) as happening:
        happening.push(much(number))
        happening.die(number % 9, lambda: happening.record(number))
        assert_nothing_found(happening.fleet, happening.fleet.keys)


# -- what somebody else put there


def _formed(files: Files, number: int) -> Edited:
    """A file is in another form, though it says the same."""
    path = sorted(files)[number % len(files)]
    return {path: b"# edited\n" + files[path]}


def _added(files: Files, number: int) -> Edited:
    path = sorted(files)[number % len(files)]
    return {f"{path.rpartition('/')[0] or 'beside'}/more.txt": b"more\n"}


def _summary_lost(files: Files, number: int) -> Edited:
    return {_summary(files, number): None}


def _summary_changed(files: Files, number: int) -> Edited:
    path = _summary(files, number)
    return {path: saying(files[path], motto=number)}


def _of_nobody(files: Files, number: int) -> Edited:
    """What is recorded of one object is said of one that is not there."""
    found = sorted(path for path in files if f"/{format.STATUS}/" in path)
    path = found[number % len(found)]
    return {path: None, f"{path.rpartition('/')[0]}/nobody-at-all.yaml": files[path]}


def _facts_changed(files: Files, number: int) -> Edited:
    more = [{"targets": ["root:a:nowhere"]}, {"motto": "x"}, {"leaving": {"root:nowhere": "workspaces/root/nowhere"}}]
    return {format.FLEET: saying(files[format.FLEET], **more[number % len(more)])}


def _summary(files: Files, number: int) -> str:
    found = sorted(path for path in files if path.endswith(f"/{format.SUMMARY}"))
    return found[number % len(found)]


MUTANTS: list[Callable[[Files, int], Edited]] = [
    _formed,
    _added,
    _summary_lost,
    _summary_changed,
    _of_nobody,
    _facts_changed,
]


@settings(max_examples=25, suppress_health_check=SLOW)
@given(history=HISTORIES, mutant=st.sampled_from(MUTANTS), number=st.integers(0, 953))
def test_a_drill_finds_what_no_server_recorded(
    tmp_path_factory: pytest.TempPathFactory, history: History, mutant: Callable[[Files, int], Edited], number: int
) -> None:
    with happened(tmp_path_factory, history) as happening:
        fleet = happening.fleet
        fleet.publish()
        edited = mutant(recorded_files(fleet), number)
        rewritten(fleet, edited)
        try:
            found = drilled(fleet, fleet.keys)
        except Failure:
            return
        assert found.found.lost or {each.file for each in found.found.differences} & edited.keys(), edited
