"""Hooks of the hosted repository ask whether a push is taken: run by git itself on pushes by path, and answered in this
process."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.fleetrepo import TREEPLANE_YAML
from support.hosting import REFUSING, Hosting
from support.loadedfleet import A, B, LoadedFleet, configmap

from apiserver.endpoints.pushhooks import ASKED, BELL, LONGEST_PUSHER, MOST_WAITING, PUSHED, PUSHER, REFUSES
from reconciler.commands.pushes import PushJudge, ask
from reconciler.commands.spool import PushQuestion, Spool
from reconciler.loading.trial import Trial
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.quarantine import PushedObjects

NAME = "tmp_objdir-incoming-AbCdEf"


@pytest.fixture
def hosting(tmp_path: Path) -> Iterator[Hosting]:
    fleet = LoadedFleet(tmp_path / "fleet")
    fleet.begin()
    made = Hosting(fleet, tmp_path / "work")
    yield made
    made.pushes.end()
    fleet.close()


def test_a_push_that_would_hold_is_refused_and_leaves_nothing(hosting: Hosting) -> None:
    hosting.begin()
    head = hosting.fleet.repo.head
    made = hosting.commit({f"{B}/bad.yaml": "kind: ["})
    taken, said = hosting.push()
    assert not taken
    assert "treeplane: refused, since it would hold 1 workspace" in said
    assert "treeplane: workspace root:b held:" in said
    assert f"treeplane:   {B}/bad.yaml:2:1: YAML: " in said
    assert hosting.fleet.repo.head == head
    assert hosting.git("cat-file", "-e", made, at=hosting.git_dir, check=False).returncode != 0
    assert hosting.left() == ["info"]
    assert hosting.rang == 1


def opened() -> Iterator[str]:
    """What this process has open; other threads of it open and close files meanwhile."""
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(file.readlink())


@pytest.mark.parametrize("limit", ["1", "100"])
def test_nothing_of_a_push_stays_open(hosting: Hosting, limit: str) -> None:
    """As a pack, or object by object; though nobody looks for garbage."""
    hosting.git("config", "receive.unpackLimit", limit, at=hosting.git_dir)
    hosting.begin()
    hosting.commit({f"{B}/bad.yaml": "kind: [", f"{A}/app.yaml": configmap(a="c")})
    gc.disable()
    try:
        assert not hosting.push()[0]
        there = [*opened()]
        assert not [name for name in (*there, *Path("/proc/self/maps").read_text().splitlines()) if "incoming" in name]
    finally:
        gc.enable()


def test_what_is_good_is_taken_without_a_word_before(hosting: Hosting) -> None:
    hosting.begin()
    hosting.commit({f"{A}/app.yaml": configmap(a="c")})
    taken, said = hosting.push()
    assert taken
    assert "treeplane" not in said


def test_what_is_held_already_is_no_reason(hosting: Hosting) -> None:
    hosting.fleet.commit({f"{B}/bad.yaml": "kind: ["})
    hosting.git("pull", "--quiet", str(hosting.git_dir), "main")
    hosting.begin()
    hosting.commit({f"{A}/app.yaml": configmap(a="c")})
    assert hosting.push()[0]


def test_other_branches_and_tags_are_not_judged(hosting: Hosting) -> None:
    hosting.begin()
    hosting.commit({f"{B}/bad.yaml": "kind: ["})
    taken, said = hosting.push("HEAD:other", "HEAD:refs/tags/v1", "HEAD:refs/heads/main2")
    assert taken, said
    assert hosting.rang == 0
    # One that is pushed together with the served one goes its way.
    assert not hosting.push("HEAD:main", "HEAD:third")[0]
    assert "third" not in hosting.git("for-each-ref", at=hosting.git_dir).stdout


def test_who_pushes_does_not_say_what_is_refused(hosting: Hosting) -> None:
    hosting.begin()
    hosting.commit({f"{B}/bad.yaml": "kind: [", "treeplane.yaml": REFUSING.replace("Refuse", "Take")})
    assert not hosting.push()[0]


def test_a_fleet_that_takes_is_not_asked(hosting: Hosting) -> None:
    hosting.fleet.commit({"treeplane.yaml": TREEPLANE_YAML})
    hosting.git("pull", "--quiet", str(hosting.git_dir), "main")
    hosting.begin()
    hosting.commit({f"{B}/bad.yaml": "kind: ["})
    assert hosting.push()[0]
    assert not (hosting.git_dir / REFUSES).exists()


def test_where_nobody_is_at_work_it_is_taken_and_that_is_said(hosting: Hosting) -> None:
    hosting.begin()
    hosting.pushes.end()
    hosting.commit({f"{B}/bad.yaml": "kind: ["})
    taken, said = hosting.push()
    assert taken
    assert "treeplane: taken without being judged: no server is at work here" in said
    # An observer has nothing to say.
    ask(hosting.git_dir, on=False)
    hosting.commit({f"{B}/bad.yaml": "kind: [["})
    assert "treeplane" not in hosting.push()[1]


def test_where_nobody_answers_it_is_taken_within_five_seconds(hosting: Hosting) -> None:
    """A server that was killed leaves its files."""
    ask(hosting.git_dir, on=True)
    spool = Spool(hosting.git_dir)
    spool.begin()
    hosting.commit({f"{B}/bad.yaml": "kind: ["})
    taken, said = hosting.push()
    assert taken
    assert "treeplane: taken without being judged: the server is away, or busy" in said
    assert [*(hosting.git_dir / ASKED).iterdir()] == []
    spool.end()


def test_a_machine_that_stood_still_is_no_reason_to_give_up(
    hosting: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Any
) -> None:
    """By the clock all of its time is over as soon as the hook looks at that again: so it is, too, where the clock was
    set. An answer that comes then is waited for."""
    looked = tmp_path / "programs" / "looked"
    looked.parent.mkdir()
    looked.touch()
    clock = looked.with_name("date")
    clock.write_text(f"#!/bin/sh\necho >>{looked}\necho $(($(wc -l <{looked}) * 100))\n")
    clock.chmod(0o755)
    answer = PushJudge.answer

    def late(judge: PushJudge, asked: PushQuestion) -> str:
        eventually(lambda: len(looked.read_text()) > 1)
        return answer(judge, asked)

    monkeypatch.setattr(PushJudge, "answer", late)
    hosting.begin()
    hosting.commit({f"{B}/bad.yaml": "kind: ["})
    path = f"{clock.parent}{os.pathsep}{os.environ['PATH']}"
    done = hosting.git("push", str(hosting.git_dir), "HEAD:main", check=False, PATH=path)
    assert "treeplane: refused, since it would hold 1 workspace" in done.stderr


def test_one_that_begins_anew_is_not_waited_for(hosting: Hosting) -> None:
    hosting.patient()
    ask(hosting.git_dir, on=True)
    spool = Spool(hosting.git_dir)
    spool.begin()
    hosting.commit({f"{B}/bad.yaml": "kind: ["})
    command = ["git", "-C", str(hosting.work), "push", str(hosting.git_dir), "HEAD:main"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as pushing:
        assert spool.wait(60)
        [asked] = spool.questions()
        spool.end()
        spool.begin()
        assert pushing.stderr is not None
        assert "the server ends, or begins anew" in pushing.stderr.read()
    assert pushing.returncode == 0
    assert asked.ref == "refs/heads/main"
    spool.end()


def test_as_many_as_may_wait(hosting: Hosting) -> None:
    ask(hosting.git_dir, on=True)
    spool = Spool(hosting.git_dir)
    spool.begin()
    for number in range(MOST_WAITING + 1):
        (hosting.git_dir / ASKED / f"incoming-{number:06}.ask").write_text("")
    hosting.commit({f"{B}/bad.yaml": "kind: ["})
    assert "taken without being judged: too many pushes come at a time" in hosting.push()[1]
    spool.end()


def must(hosting: Hosting) -> Spool:
    """The answer decides who may push, and nobody gives one."""
    ask(hosting.git_dir, on=True, must=True)
    spool = Spool(hosting.git_dir)
    spool.begin()
    hosting.commit({f"{A}/app.yaml": configmap(a="c")})
    return spool


def refused(hosting: Hosting, why: str, *said: tuple[bool, str]) -> None:
    head = hosting.fleet.repo.head
    taken, text = said[0] if said else hosting.push()
    assert not taken
    assert f"treeplane: refused, since it could not be judged: {why}; try again" in text
    assert "taken" not in text
    assert hosting.fleet.repo.head == head
    assert [*(hosting.git_dir / PUSHED).iterdir()] == []


@pytest.mark.parametrize("gone", [ASKED, BELL])
def test_where_it_has_to_be_judged_none_is_taken_without_a_server(hosting: Hosting, gone: str) -> None:
    spool = must(hosting)
    (hosting.git_dir / gone).rename(hosting.git_dir / "elsewhere")
    refused(hosting, "no server is at work here")
    spool.end()


def test_nor_where_too_many_wait_or_the_question_cannot_be_asked(hosting: Hosting) -> None:
    spool = must(hosting)
    waiting = [hosting.git_dir / ASKED / f"incoming-{number:06}.ask" for number in range(MOST_WAITING + 1)]
    for file in waiting:
        file.write_text("")
    refused(hosting, "too many pushes come at a time")
    for file in waiting:
        file.unlink()
    hook = hosting.git_dir / "hooks" / "pre-receive"
    text = hook.read_text()
    hook.write_text(text.replace("umask 077\n", "umask 077\nrmdir treeplane/asked\n"))
    refused(hosting, "the server cannot be asked")
    hook.write_text(text.replace("name=${GIT_QUARANTINE_PATH##*/}", "name="))
    refused(hosting, "git does not say where it keeps what is pushed")
    spool.end()


def test_nor_where_nobody_answers(hosting: Hosting) -> None:
    spool = must(hosting)
    refused(hosting, "the server is away, or busy")
    spool.end()


@pytest.mark.parametrize(
    ("answer", "why"),
    [("begin anew", "the server ends, or begins anew"), ("", "what the server answers cannot be read"),
     ("tak", "what the server answers cannot be read"), ("late", "that takes longer than five seconds"),
     ("unjudged\nof a \\fault, at 100%s\n", "of a \\fault, at 100%s")],
)  # fmt: skip
def test_nor_where_the_answer_is_none(hosting: Hosting, answer: str, why: str) -> None:
    spool = must(hosting)
    hosting.patient(4 if answer == "late" else 60)
    command = ["git", "-C", str(hosting.work), "push", str(hosting.git_dir), "HEAD:main"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as pushing:
        assert spool.wait(60)
        [asked] = spool.questions()
        if answer == "begin anew":
            spool.end()
            spool.begin()
        elif answer != "late":
            spool.answer(asked.name, answer)
        assert pushing.stderr is not None
        said = pushing.stderr.read()
    refused(hosting, why, (pushing.returncode == 0, said))
    spool.end()


def test_nor_what_the_judge_cannot_judge(hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("lab")

    hosting.begin()
    ask(hosting.git_dir, on=True, must=True)
    monkeypatch.setattr(Trial, "run", fail)
    hosting.commit({f"{A}/app.yaml": configmap(a="c")})
    refused(hosting, "of a fault in this program; the log says more")
    monkeypatch.undo()
    assert hosting.push()[0]


def test_a_push_moves_the_branch_once(hosting: Hosting) -> None:
    """git would make of two what the first says, and the last would be judged."""
    must(hosting).end()
    lines = "".join(f"{'1' * 40} {number * 40} refs/heads/main\n" for number in "23")
    command = ["sh", "hooks/pre-receive"]
    done = subprocess.run(command, cwd=hosting.git_dir, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "moves refs/heads/main twice" in done.stderr


@pytest.mark.parametrize("pusher", ["", '{"username":"al\\"$(x)`%s\\\\ é"}', "x" * LONGEST_PUSHER])
def test_a_question_says_who_pushes(hosting: Hosting, pusher: str) -> None:
    spool = must(hosting)
    hosting.patient()
    command = ["git", "-C", str(hosting.work), "push", str(hosting.git_dir), "HEAD:main"]
    environment = {**os.environ, **({PUSHER: pusher} if pusher else {})}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as pushing:
        assert spool.wait(60)
        [asked] = spool.questions()
        spool.answer(asked.name, "take\n")
        assert pushing.wait(60) == 0
    assert asked.pusher == pusher
    assert [*spool.questions()] == []
    (hosting.git_dir / ASKED / f"{NAME}.ask").write_text(f"{'0' * 40} {'1' * 40} refs/heads/main\n{'x' * 2**17}\n")
    assert [*spool.questions()] == []
    spool.end()


def test_what_takes_too_long_or_is_away_is_taken_with_the_reason(hosting: Hosting, tmp_path: Path) -> None:
    hosting.begin()
    made = hosting.commit({f"{B}/bad.yaml": "kind: ["})
    head = hosting.fleet.repo.head
    gone = PushQuestion(NAME, head, made, "refs/heads/main")
    assert hosting.judge.answer(gone) == "unjudged\nwhat it brings could not be read\n"
    (hosting.git_dir / "objects" / NAME).mkdir()
    assert "could not be read" in hosting.judge.answer(gone)
    pushed = hosting.git_dir / "objects" / NAME
    hosting.git("clone", "--quiet", "--bare", str(hosting.work), str(tmp_path / "all"))
    (tmp_path / "all" / "objects" / "info").rename(tmp_path / "info")
    pushed.rmdir()
    (tmp_path / "all" / "objects").rename(pushed)
    assert hosting.judge.answer(gone).startswith("refuse\n")
    assert "takes longer than is waited for" in hosting.judging(0).answer(gone)
    assert hosting.judge.answer(gone._replace(ref="refs/heads/other")) == "take\n"
    (pushed / "large").write_bytes(bytes(9 * 1024 * 1024))
    assert "it brings more than 8 MiB" in hosting.judge.answer(gone)


def test_a_fault_of_the_program_refuses_nothing(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("lab")

    hosting.begin()
    monkeypatch.setattr(Trial, "run", fail)
    hosting.commit({f"{B}/bad.yaml": "kind: ["})
    taken, said = hosting.push()
    assert taken
    assert "of a fault in this program" in said
    assert "lab" in caplog.text


@pytest.mark.parametrize(
    "name", ["..", "pack", "incoming-", "../objects/incoming-AbCdEf", "tmp_objdir-incoming-Ab/Cd", ""]
)
def test_nothing_but_what_git_keeps_a_push_in_is_read(hosting: Hosting, name: str) -> None:
    (hosting.git_dir / "objects" / "incoming-").mkdir()
    with pytest.raises(RepositoryUnreadable):
        PushedObjects(hosting.git_dir, name)


def test_nor_what_leads_elsewhere(hosting: Hosting, tmp_path: Path) -> None:
    place = hosting.git_dir / "objects" / NAME
    place.symlink_to(tmp_path)
    with pytest.raises(RepositoryUnreadable, match="is not what git keeps a push in"):
        PushedObjects(hosting.git_dir, NAME)
    place.unlink()
    (place / "info").mkdir(parents=True)
    (place / "info" / "alternates").write_text(f"{tmp_path}\n")
    with pytest.raises(RepositoryUnreadable, match="is not what git keeps a push in"):
        PushedObjects(hosting.git_dir, NAME)


def test_what_somebody_put_there_is_not_read_and_goes(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    spool = Spool(tmp_path, left=0)
    spool.begin()
    there = tmp_path / ASKED
    (there / "incoming-aaaaaa.ask").write_text("no question")
    (there / "incoming-bbbbbb.ask").symlink_to("/etc/passwd")
    os.mkfifo(there / "incoming-cccccc.ask")
    (there / "incoming-dddddd.ask").write_bytes(b"\xff" * 10_000)
    (there / "..ask").write_text(f"{'0' * 40} {'1' * 40} refs/heads/main\n")
    (there / "incoming-eeeeee.ask").mkdir()
    (there / "incoming-eeeeee.ask" / "x").touch()
    (there / "incoming-ffffff.answer").write_text("take\n")
    (there / "incoming-gggggg.ask").write_text(f"{'0' * 40} {'1' * 40} refs/heads/main\n\n")
    assert [asked.name for asked in spool.questions()] == ["incoming-gggggg"]
    assert [*spool.questions()] == []
    eventually(lambda: spool.sweep() or not [*there.iterdir()])
    spool.end()
    assert not (tmp_path / BELL).exists()


def test_who_rings_as_it_begins_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as there is a bell: what is written to a pipe that nobody else has open is lost."""
    spool, opens, rang = Spool(tmp_path), os.open, list[bool]()

    def ring_first(path: Path, flags: int) -> int:
        if (tmp_path / BELL).exists():
            hook = opens(tmp_path / BELL, os.O_RDWR)
            os.write(hook, b"\n")
            os.close(hook)
            rang.append(True)
        return opens(path, flags)

    monkeypatch.setattr(os, "open", ring_first)
    spool.begin()
    monkeypatch.undo()
    assert spool.wait(0) == bool(rang)
    spool.end()
    assert [*(tmp_path / BELL).parent.iterdir()] == []


def test_who_rings_is_heard_and_nobody_waits(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.begin()
    assert not spool.wait(0)
    for _ in range(3000):
        spool.ring()
    assert spool.wait(0)
    assert not spool.wait(0)
    for _ in range(100_000):  # a pipe that is full
        spool.ring()
    assert spool.wait(0)
    spool.end()
    spool.ring()
