"""Who is written to when: each once for what it is to have, nobody waits for another, and faults ever more seldom."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.gitserver import GitAsked
from support.sourcevisits import NAME
from support.writtensources import WrittenTenant

from reconciler.repository.sourcerefs import source_name
from reconciler.sourcing.excerpts import Excerpt
from reconciler.sourcing.excerptwriter import ExcerptWriter
from reconciler.sourcing.settings import DEFAULT, FollowSettings, SourceBounds

LONG = 20.0
OTHER = source_name("other", "https://example.com/b.git")
QUICK = replace(DEFAULT, interval=0.05, least=0.0, longest=0.05, slots=2, brief=0.3)


class Writing:
    """`until` waits for news; whatever became of it, `news` counts."""

    def __init__(self, written: WrittenTenant) -> None:
        self.written, self.changed, self.news = written, threading.Condition(), 0
        self._made = list[ExcerptWriter]()

    def begin(self, settings: FollowSettings = QUICK, check: Callable[[], None] = lambda: None) -> ExcerptWriter:
        made = ExcerptWriter(self.written.store, settings, self._heard, check=check)
        self._made.append(made)
        made.start()
        return made

    def close(self) -> None:
        for each in self._made:
            each.close(5.0)

    def until(self, holds: Callable[[], Any]) -> None:
        with self.changed:
            assert self.changed.wait_for(holds, LONG), "it never came to that"

    def says(self, summary: str, version: str = "", **more: Any) -> Excerpt:
        return self.written.excerpt({"_summary.yaml": summary}, version, **more)

    def _heard(self) -> None:
        with self.changed:
            self.news += 1
            self.changed.notify_all()


@pytest.fixture
def writing(written: WrittenTenant) -> Iterator[Writing]:
    made = Writing(written)
    yield made
    made.close()


def steps(writing: Writing) -> list[str]:
    return list(writing.written.server.steps)


def test_what_is_wanted_is_written_and_the_last_of_several(writing: Writing) -> None:
    writer = writing.begin()
    writer.write({NAME: writing.says("one")})
    writing.until(lambda: writer.known(NAME).written)
    assert writing.written.files() == {"_summary.yaml": "one"}
    for each in ("two", "three", "four"):
        writer.write({NAME: writing.says(each)})
    assert not writer.known(NAME).written
    writing.until(lambda: writer.known(NAME).written)
    assert writing.written.files() == {"_summary.yaml": "four"}
    assert steps(writing).count("push") <= 4


def test_one_is_not_written_to_twice_within_the_interval(writing: Writing) -> None:
    writer = writing.begin(replace(QUICK, interval=1000.0, least=1000.0, longest=1000.0))
    writer.write({NAME: writing.says("one")})
    writing.until(lambda: writer.known(NAME).written)
    writer.write({NAME: writing.says("two")})
    writer.write({NAME: writing.says("two"), OTHER: writing.says("two", branch="treeplane/other")})
    writing.until(lambda: writer.known(OTHER).written)
    assert writing.written.files() == {"_summary.yaml": "one"}
    assert not writer.known(NAME).written
    assert steps(writing) == ["refs to write", "push"] * 2


def test_after_a_restart_the_same_is_not_written_and_nobody_asked(writing: Writing) -> None:
    first = writing.begin()
    first.write({NAME: writing.says("one")})
    writing.until(lambda: first.known(NAME).written)
    first.close(5.0)
    asked = len(steps(writing))
    again = writing.begin()
    again.write({NAME: writing.says("one")})
    assert again.known(NAME).written
    again.write({NAME: writing.says("one"), OTHER: writing.says("x", branch="treeplane/other")})
    writing.until(lambda: again.known(OTHER).written)
    assert len(steps(writing)) == asked + 2


def test_a_fault_is_told_once_and_goes_when_it_is_written(writing: Writing) -> None:
    tried = threading.Semaphore(0)

    def fails(asked: GitAsked) -> bool:
        tried.release()
        asked.reply(b"", 500)
        return True

    writing.written.server.spoil = fails
    writer = writing.begin()
    writer.write({NAME: writing.says("one")})
    writing.until(lambda: writer.known(NAME).fault)
    assert writer.known(NAME).reason == "Failing"
    for _ in range(4):
        assert tried.acquire(timeout=LONG)
    assert writing.news == 1
    writing.written.server.spoil = lambda _: False
    writing.until(lambda: writer.known(NAME).written)
    assert (writing.written.files(), writing.news) == ({"_summary.yaml": "one"}, 2)


def test_what_changes_has_nobody_with_a_fault_tried_sooner_and_other_credentials_do(writing: Writing) -> None:
    """Ever more seldom is ever more seldom, whatever is to be written by now."""
    writing.written.server.password = "s3cret"
    writer = writing.begin(replace(QUICK, interval=1000.0, longest=1000.0))
    writer.write({NAME: writing.says("one")})
    writing.until(lambda: writer.known(NAME).fault)
    writer.write({NAME: writing.says("two")})
    writer.write({NAME: writing.says("three"), OTHER: writing.says("x", branch="treeplane/other")})
    writing.until(lambda: writer.known(OTHER).fault)
    assert steps(writing) == ["refs to write"] * 2
    writing.written.server.password = ""
    known = replace(writing.written.server.source("a.git").credentials, token="t")
    writer.write({NAME: writing.says("three", credentials=known)})
    writing.until(lambda: writer.known(NAME).written)
    assert writing.written.files() == {"_summary.yaml": "three"}


def test_those_that_hang_delay_no_other(writing: Writing) -> None:
    hung = [source_name(str(number), "https://example.com/h.git") for number in range(6)]

    def hangs(asked: GitAsked) -> bool:
        if asked.step == "push" and b"refs/heads/treeplane/hang" in asked.body:
            asked.ended.wait()
            return True
        return False

    writing.written.server.spoil = hangs
    writer = writing.begin(replace(QUICK, longest=1000.0, bounds=SourceBounds(visit=1000.0, quiet=1000.0)))
    slow = {name: writing.says("x", branch=f"treeplane/hang{number}") for number, name in enumerate(hung)}
    writer.write(slow)
    writer.write({**slow, OTHER: writing.says("one")})
    writing.until(lambda: writer.known(OTHER).written)
    writer.write({**slow, OTHER: writing.says("two")})
    writing.until(lambda: writer.known(OTHER).written)
    assert writing.written.files() == {"_summary.yaml": "two"}


def test_who_holds_the_fleet_no_more_writes_nothing(writing: Writing) -> None:
    def over() -> None:
        raise RuntimeError("another process has the role")

    writer = writing.begin(check=over)
    writer.write({NAME: writing.says("one")})
    writing.until(lambda: writer.known(NAME).fault)
    assert writer.known(NAME).reason == "Broken"
    assert writing.written.head() is None


def test_what_is_not_wanted_any_more_stays_where_it_is(writing: Writing) -> None:
    writer = writing.begin(replace(QUICK, kept=0.0, clean=0.0))
    writer.write({NAME: writing.says("one")})
    writing.until(lambda: writer.known(NAME).written)
    writer.write({OTHER: writing.says("x", branch="treeplane/other")})
    assert writer.known(NAME) == (False, "", "", "")
    writing.until(lambda: writer.known(OTHER).written)
    assert writing.written.files() == {"_summary.yaml": "one"}


def test_an_end_waits_for_nobody(writing: Writing) -> None:
    entered = threading.Event()

    def hangs(asked: GitAsked) -> bool:
        entered.set()
        asked.ended.wait()
        return True

    writing.written.server.spoil = hangs
    writer = writing.begin()
    writer.write({NAME: writing.says("one")})
    assert entered.wait(LONG)
    writer.close(LONG)
    assert writer.known(NAME) == (False, "", "", "")
