"""What `treeplane status` prints, what it ends with, and that its page has a paragraph for each line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from apiserver.complaints.complaint import Complaint, ComplaintKind, Complaints
from reconciler.__main__ import main
from reconciler.commands import reconcilenow, statuswords
from reconciler.commands.failure import Failure
from reconciler.commands.line import watching
from reconciler.commands.reconcilenow import LookFound
from reconciler.plugin.client import Answer

DOCUMENT = Path(__file__).parents[4] / "docs" / "status.md"
HEAD, NEWER = "1" * 40, "2" * 40
HELD = Complaint("held", "root:shop", "a.yaml:3: bad", "treeplane validate -w root:shop")


def ran(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, [*words])
    return result.exit_code, result.output


def test_nothing_is_wrong() -> None:
    assert statuswords.table(Complaints(workspaces=11, commit=HEAD)) == (
        "nothing is wrong; 11 workspaces are served at 1111111111\n"
    )


def test_each_line_has_its_command_and_each_kind_says_how_many_more_there_are() -> None:
    remote = Complaint("remote", "the fleet", "no route", "treeplane reconcile-now")
    found = Complaints((remote, HELD), {"held": 7}, ("the disk",), 11, HEAD)
    assert statuswords.table(found).splitlines() == [
        "remote  the fleet: no route",
        "          treeplane reconcile-now",
        "held    root:shop: a.yaml:3: bad",
        "          treeplane validate -w root:shop",
        "held    and 7 more",
        "not looked at: the disk",
    ]


def test_what_others_wrote_does_nothing_in_a_terminal() -> None:
    words = "a\x1b[2J\nheld  root: forged\r\u202e##[error]" + "x" * 100_000
    found = Complaints((Complaint("held", words, words, words),), {}, (words,))
    printed = statuswords.told(found, "table")
    assert all(character.isprintable() for line in printed.splitlines() for character in line)
    assert len(printed.splitlines()) == 3
    assert len(printed) < 3_000
    for form in ("json", "yaml"):
        assert statuswords.told(found, form).isascii()
        assert "\x1b" not in statuswords.told(found, form)
    assert all(c.isprintable() for c in LookFound("root", True, words, words, words).told("table").rstrip("\n"))


def test_data_says_all_of_it() -> None:
    found = Complaints((HELD,), {"held": 7}, ("the disk",), 11, HEAD)
    assert Complaints.read(json.loads(statuswords.told(found, "json"))) == found
    assert Complaints.read(yaml.safe_load(statuswords.told(found, "yaml"))) == found


@pytest.mark.parametrize(("listed", "code"), [((), 0), ((HELD,), 1)])
def test_the_exit_code_says_whether_something_is_wrong(
    monkeypatch: pytest.MonkeyPatch, listed: tuple[Complaint, ...], code: int
) -> None:
    monkeypatch.setattr(watching, "of_server", lambda _: Complaints(listed, {}, (), 1, HEAD))
    assert ran("status")[0] == code


def test_what_cannot_be_asked_or_is_typed_wrongly(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], "
        "users: [{name: a, user: {}}], clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]}"
    )
    code, said = ran("status", "--kubeconfig", str(config))
    assert code == 3
    assert "does not answer" in said
    assert "treeplane status --data-dir DIR" in said
    assert ran("reconcile-now", "--kubeconfig", str(config))[0] == 3
    assert ran("status", "--kubeconfig", str(config), "--data-dir", str(tmp_path))[0] == 2
    assert ran("status", "--keys", str(tmp_path))[0] == 2
    assert ran("status", "--data-dir", str(tmp_path / "none"))[0] == 2
    assert ran("status", "-o", "xml")[0] == 2


@pytest.mark.parametrize(
    ("found", "words", "good"),
    [
        (LookFound("root", True, HEAD, HEAD), "the branch is at 1111111111, and that is served", True),
        (LookFound("root", True, HEAD, HEAD, "", 2), "2 workspaces are held", False),
        (LookFound("root", True, NEWER, HEAD, "why"), "at 2222222222, and 1111111111 is served: why", False),
        (
            LookFound("root", True, "", HEAD, "no route"),
            "looked at the repository, and 1111111111 is served: no",
            False,
        ),
        (LookFound("root:a", True, HEAD, HEAD, "", 1), "looked at the source of root:a", False),
        (LookFound("root", wrong="2222222222 is being loaded"), "not done yet: 2222222222 is being loaded", False),
    ],
)
def test_what_a_look_found(found: LookFound, words: str, good: bool) -> None:
    assert words in found.told("table")
    assert found.good is good
    assert json.loads(found.told("json"))["head"] == found.head


def test_it_waits_for_a_look_that_began_when_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcilenow.time, "sleep", lambda _: None)

    def looked(began: float, head: str) -> dict[str, Any]:
        return {"looked": {"began": began, "head": head, "served": head, "wrong": ""}, "arriving": [], "held": 0}

    answers = iter([{"looked": None, "arriving": [], "held": 0}, looked(9.0, HEAD), looked(10.0, NEWER)])
    found = reconcilenow._waited(lambda: next(answers), "root", 10.0, float("inf"))
    assert (found.answered, found.head) == (True, NEWER)
    late = reconcilenow._waited(lambda: {**looked(9.0, HEAD), "arriving": [NEWER]}, "root", 10.0, 0.0)
    assert (late.answered, late.wrong) == (False, "2222222222 is being loaded")


def test_who_may_not_is_told_what_it_takes() -> None:
    with pytest.raises(Failure, match="`post` and `get` on the URL /reconcile"):
        reconcilenow._read(Answer(403, {"message": "forbidden"}), 202)


def test_each_kind_of_line_has_its_paragraph() -> None:
    told = re.findall(r"^### (.+)\n\n\S", DOCUMENT.read_text(), re.MULTILINE)
    assert told == [str(kind) for kind in ComplaintKind], "in the order in which they are printed"
