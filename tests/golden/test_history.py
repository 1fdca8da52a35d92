"""How `treeplane log`, `blame` and `trace` tell of what hostile strangers wrote, word for word, in every form.

Names, values, authors and subjects say terminal escapes, workflow commands and lines of their own. `pytest tests/golden
--update-golden` writes the forms anew: read the difference.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.history.result import (
    CopyDifference,
    FleetLog,
    LogEntry,
    ObjectBlame,
    ObjectStep,
    ObjectTrace,
    ObjectWriter,
    SetField,
    SignatureState,
    SignedBy,
    ToldCommit,
    TracedPlacement,
    WorkspaceStep,
)
from reconciler.history.telling import FORMS
from reconciler.loading.changeset import ChangeKind
from reconciler.plan.pushedby import NOBODY, SERVER, PushedBy
from reconciler.review.fields import ABSENT, HIDDEN
from reconciler.review.result import ObjectName

HERE = Path(__file__).parent / "history"
EVIL = (
    "::error::x ##[add-path]/evil ##vso[task.setvariable] \x1b]0;owned\x07\x1b[31m\r\n::set-env name=PATH::/evil\n"
    "\u202egnp.exe \u2028 \x9b31m \ud800"
)
NAME = ObjectName("root:a", "ConfigMap", "configmaps", EVIL, EVIL)
COMMITS = tuple(
    ToldCommit(letter * 40, time, EVIL, SignedBy(state, EVIL, EVIL, EVIL), pusher, EVIL)
    for letter, time, state, pusher in (
        ("a", 1_767_225_600, SignatureState.GOOD, PushedBy(EVIL, SERVER)),
        ("b", 1_767_225_500, SignatureState.SERVER, NOBODY),
        ("c", 2**62, SignatureState.NONE, NOBODY),
        ("d", -(2**62), SignatureState.LAPSED, PushedBy(EVIL, "push")),
        ("e", 0, SignatureState.BAD, NOBODY),
        ("f", 0, SignatureState.UNKNOWN, NOBODY),
    )
)


def logged() -> FleetLog:
    objects = tuple(
        ObjectStep(NAME, change, EVIL, line, moved, writer)
        for change, line, moved, writer in (
            (ChangeKind.CREATED, 1, "", ObjectWriter(EVIL, True)),
            (ChangeKind.CONFIGURED, 0, "", ObjectWriter(EVIL, False)),
            (ChangeKind.MOVED, 3, EVIL, None),
        )
    )
    steps = (
        WorkspaceStep(EVIL, EVIL, ChangeKind.CONFIGURED, objects),
        WorkspaceStep("root:b", EVIL, ChangeKind.MOVED, moved_from=EVIL, writer=ObjectWriter(EVIL, False)),
        WorkspaceStep("root:c", EVIL, ChangeKind.MOVED, moved_to=EVIL),
    )
    entries = (LogEntry(COMMITS[0], steps, True, (EVIL,)), *(LogEntry(each, ()) for each in COMMITS[1:]))
    return FleetLog(EVIL, "a" * 40, entries, True)


def blamed() -> ObjectBlame:
    fields = (SetField(f"data[{EVIL}]", EVIL, 0, EVIL, 3), SetField("data.secret", HIDDEN, 1, EVIL, 0))
    commits = ((COMMITS[0], ObjectWriter(EVIL, True)), (COMMITS[1], None))
    return ObjectBlame(NAME, EVIL, "a" * 40, EVIL, 1, fields, commits, (EVIL,))


def traced() -> tuple[ObjectTrace, ...]:
    by = TracedPlacement(EVIL, EVIL, EVIL, "False", EVIL, EVIL)
    differs = (CopyDifference(EVIL, EVIL, ABSENT), CopyDifference("data.secret", HIDDEN, HIDDEN))
    found = ObjectTrace(
        NAME,
        EVIL,
        EVIL,
        3,
        COMMITS[0],
        ObjectWriter(EVIL, False),
        "b" * 40,
        "c" * 40,
        EVIL,
        (by,),
        False,
        differs,
        (EVIL,),
    )
    plain = ObjectTrace(NAME, "", EVIL, 3, COMMITS[2], None, "b" * 40, "", "", (), True, ())
    return found, plain


FOUND: dict[str, Any] = {"log": logged(), "blame": blamed(), "trace": traced()}
EACH = [(verb, form) for verb in FOUND for form in sorted(FORMS)]


@pytest.mark.parametrize(("verb", "form"), EACH)
def test_what_a_stranger_says(verb: str, form: str, update_golden: bool) -> None:
    found, golden = FORMS[form](FOUND[verb]), HERE / f"{verb}-{form}.txt"
    if update_golden:
        golden.write_text(found)
    assert found == golden.read_text()


@pytest.mark.parametrize(("verb", "form"), EACH)
def test_no_line_is_a_command_and_no_character_acts(verb: str, form: str) -> None:
    for line in FORMS[form](FOUND[verb]).split("\n"):
        assert line.isprintable(), line
        assert "##[" not in line, line
        assert "##vso[" not in line, line
        assert not line.lstrip().startswith("::"), line


def test_programs_read_what_was_said() -> None:
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        found = read(FORMS[form](FOUND["blame"]))
        assert [each.get("hidden") for each in found["fields"]] == [None, True]
        assert found["commits"][0]["writtenBy"]["known"] is True
        found = read(FORMS[form](FOUND["trace"]))["objects"][0]
        assert found["differs"][1] == {"field": "data.secret", "hidden": True}
        found = read(FORMS[form](FOUND["log"]))
        assert [each["signer"]["state"] for each in found["commits"]] == [
            *("good", "server", "none", "lapsed", "bad", "unknown")
        ]
