"""`treeplane pushes`: what is written of pushes, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from apiserver.pushlog import PushedRef, Pusher, PushLog, RefOutcome
from reconciler.commands.line.pushing import pushes

OLD, NEW = "1" * 40, "2" * 40
HOSTILE = "a\nb\x1b[31m\u202e\u2028"


def run(data_dir: Path, *arguments: str) -> str:
    found = CliRunner().invoke(pushes, ["--data-dir", str(data_dir), *arguments])
    assert found.exit_code == 0, found.output
    return found.output


def push(log: PushLog, user: str, ref: str = "refs/heads/main", **ends: Any) -> None:
    push = log.begun(Pusher(user, ("devs",), "192.0.2.1", "r-1"), [PushedRef(ref, OLD, NEW)], "refs/heads/main")
    if ends:
        log.ended(push, {ref: RefOutcome(ref, ends["result"], ends.get("reason", ""))}, ends.get("words", ""))


@pytest.fixture
def log(tmp_path: Path) -> PushLog:
    return PushLog(tmp_path, durable=False)


def test_the_newest_first_with_what_came_of_it(log: PushLog, tmp_path: Path) -> None:
    push(log, "ann", result="accepted", words="treeplane: commit 2222 is served")
    push(log, "bob", result="held", words="treeplane: commit 2222 is held\nmore")
    push(log, "ann", result="refused", reason="non-fast-forward")
    push(log, "eve")
    log.refused(Pusher("mallory", (), "192.0.2.9", "r-2"), "forbidden: no")
    lines = [line.split(maxsplit=6) for line in run(tmp_path).splitlines()]
    assert lines[0] == ["TIME", "USER", "ADDRESS", "REF", "FROM", "TO", "RESULT    WHY"]
    assert [line[1:] for line in lines[1:]] == [
        ["mallory", "192.0.2.9", "-", "-", "-", "refused   forbidden: no"],
        ["eve", "192.0.2.1", "refs/heads/main", OLD[:10], NEW[:10], lines[2][6]],
        ["ann", "192.0.2.1", "refs/heads/main", OLD[:10], NEW[:10], "refused   non-fast-forward"],
        ["bob", "192.0.2.1", "refs/heads/main", OLD[:10], NEW[:10], "held      commit 2222 is held"],
        ["ann", "192.0.2.1", "refs/heads/main", OLD[:10], NEW[:10], "accepted"],
    ]
    assert lines[2][6].startswith("unknown   no end is written")


def test_as_data_there_is_all(log: PushLog, tmp_path: Path) -> None:
    push(log, "ann", result="held", words="one\ntwo")
    found = json.loads(run(tmp_path, "-o", "json"))
    assert yaml.safe_load(run(tmp_path, "-o", "yaml")) == found
    (only,) = found["pushes"]
    assert only.pop("time").endswith("Z")
    ref = {"ref": "refs/heads/main", "old": OLD, "new": NEW, "result": "held", "reason": ""}
    assert only == {
        "user": "ann", "groups": ["devs"], "address": "192.0.2.1", "request": "r-1", "refs": [ref], "result": "held",
        "words": ["one", "two"],
    }  # fmt: skip


def test_what_is_asked_for(log: PushLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.pushlog.time.time", lambda: 1000.0)
    push(log, "ann", result="accepted")
    monkeypatch.undo()
    push(log, "ann", result="accepted")
    push(log, "bob", result="accepted")

    def users(*arguments: str) -> list[str]:
        return [each["user"] for each in json.loads(run(tmp_path, "-o", "json", *arguments))["pushes"]]

    assert users() == ["bob", "ann", "ann"]
    assert users("--user", "ann") == ["ann", "ann"]
    assert users("--since", "7d") == ["bob", "ann"]
    assert users("--max", "1") == ["bob"]
    assert "no push is written down" in run(tmp_path, "--user", "carol")
    refused = CliRunner().invoke(pushes, ["--data-dir", str(tmp_path), "--since", "yesterday"])
    assert (refused.exit_code, "says no duration" in refused.output) == (2, True)


def test_what_pushers_chose_does_nothing_to_a_terminal(log: PushLog, tmp_path: Path) -> None:
    push(log, HOSTILE, f"refs/heads/{HOSTILE}", result="refused", reason=HOSTILE)
    push(log, "ann", result="held", words=f"{HOSTILE}\r{HOSTILE}")
    log.refused(Pusher(HOSTILE, (HOSTILE,), HOSTILE, HOSTILE), HOSTILE)
    for form in ("table", "json", "yaml"):
        text = run(tmp_path, "-o", form)
        assert all(c.isprintable() or c == "\n" for c in text), form
    assert len(run(tmp_path).splitlines()) == 4
    assert json.loads(run(tmp_path, "-o", "json"))["pushes"][2]["user"] == HOSTILE


def test_what_is_no_line_is_counted(log: PushLog, tmp_path: Path) -> None:
    push(log, "ann", result="accepted")
    with (tmp_path / "pushes.log").open("ab") as file:
        file.write(b'{"push": "x", "begun": "never"}\n[]\n{"push": 1, "begun": 1, "refs": {}}\n\xff\xff\n{"half')
    push(log, "bob", result="accepted")
    text = run(tmp_path)
    assert "not read: 5 lines" in text
    assert len(text.splitlines()) == 4


def test_files_that_are_set_aside_are_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.pushlog._MIB", 40)
    log = PushLog(tmp_path)
    for number in range(4):
        push(log, f"user-{number}", result="accepted")
    assert len([*log.pushes.files()]) > 2
    found = json.loads(run(tmp_path, "-o", "json"))["pushes"]
    assert [(each["user"], each["result"]) for each in found] == [(f"user-{n}", "accepted") for n in (3, 2, 1, 0)]


def test_nobody_has_pushed(tmp_path: Path) -> None:
    assert run(tmp_path) == "no push is written down here, or none that was asked for\n"
    assert json.loads(run(tmp_path, "-o", "json")) == {"pushes": [], "unread": 0}
