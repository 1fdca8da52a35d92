"""What the log of pushes holds, and that who may not push cannot fill it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apiserver import pushlog
from apiserver.pushlog import PushedRef, Pusher, PushLog

ANN = Pusher("ann", ("devs",), "192.0.2.1", "r-1")


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_served_ref_is_told_however_many_there_are(tmp_path: Path) -> None:
    log = PushLog(tmp_path)
    refs = [PushedRef(f"refs/heads/b{n}", "0" * 40, "1" * 40) for n in range(999)]
    log.begun(ANN, [*refs, PushedRef("refs/heads/main", "1" * 40, "2" * 40)], "refs/heads/main")
    (found,) = lines(tmp_path / "pushes.log")
    assert found["refs"][0]["ref"] == "refs/heads/main"  # type: ignore[index]
    assert (len(found["refs"]), found["moreRefs"]) == (100, 900)  # type: ignore[arg-type]


def test_who_pushes_is_told_within_a_bound(tmp_path: Path) -> None:
    log = PushLog(tmp_path)
    groups = tuple(f"{n}{'g' * 10_000}" for n in range(1000))
    log.begun(Pusher("u" * 100_000, groups, "192.0.2.1", "r"), [], "refs/heads/main")
    assert (tmp_path / "pushes.log").stat().st_size < 40_000
    (found,) = lines(tmp_path / "pushes.log")
    assert found["moreGroups"] == 950


@pytest.mark.parametrize("before", [0, 3970, 3985])
def test_passwords_in_urls_are_left_out_of_what_was_shown(tmp_path: Path, before: int) -> None:
    """What is wrong with a file is told with what stands there."""
    log = PushLog(tmp_path)
    words = f"{'x' * before} https://me:{'s3cret' * 5}@forge/x"
    log.ended(log.begun(ANN, [], "refs/heads/main"), {}, words)
    log.refused(ANN, words)
    for file in tmp_path.iterdir():
        assert "s3" not in file.read_text()


def test_of_refusals_a_few_are_told_and_the_rest_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(pushlog.time, "monotonic", lambda: now[0])
    log = PushLog(tmp_path)
    for number in range(100):
        log.refused(Pusher("mallory", (), "192.0.2.9", f"m-{number}"), "forbidden")
    for number in range(100):
        log.refused(Pusher("", (), f"198.51.100.{number}", f"n-{number}"), "Unauthorized")
    found = lines(tmp_path / "pushes-refused.log")
    assert [each["request"] for each in found[:5]] == ["m-0", "m-1", "m-2", "m-3", "m-4"]
    assert len(found) == 30
    log.count()
    log.count()
    assert [each.get("count") for each in lines(tmp_path / "pushes-refused.log")[30:]] == [170]
    assert not (tmp_path / "pushes.log").exists(), "they push out nothing"
    now[0] += pushlog.WINDOW
    assert log.refused(ANN, "forbidden")


def test_refusals_take_so_much_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushlog, "_MIB", 1000)
    log = PushLog(tmp_path)
    for number in range(2000):
        monkeypatch.setattr(pushlog.time, "monotonic", lambda number=number: number * pushlog.WINDOW)
        log.refused(ANN, "x" * 10_000)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 4 * 4 * 1000 + 5000
