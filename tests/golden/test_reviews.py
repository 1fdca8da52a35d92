"""How `treeplane diff` tells of a change that a hostile stranger proposes, word for word, in every form.

Names, values, messages and files say workflow commands, fences, mentions, links, tags, terminal escapes and lines of
their own. `pytest tests/golden --update-golden` writes the forms anew: read the difference. What has to hold of them
whatever they look like is asked by itself.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from apiserver.model.commits import own
from reconciler.layout.errors import LayoutError
from reconciler.loading.changeset import ChangeKind
from reconciler.plan.deletions import Line, Loss, RefusedDeletion
from reconciler.plan.pushedby import SERVER, PushedBy
from reconciler.review.fields import ABSENT, HIDDEN, FieldChange
from reconciler.review.result import (
    ChangeReview,
    CopyChange,
    ObjectDifference,
    ObjectName,
    ReviewedCommit,
    TargetDifference,
    Warned,
    WorkspaceDifference,
)
from reconciler.review.telling import FORMS
from reconciler.review.telling.markdown import MOST

HERE = Path(__file__).parent / "review"
EVIL = (
    "::error::x ##[add-path]/evil ##vso[task.setvariable] \x1b]0;owned\x07\x1b[31m\r\n::set-env name=PATH::/evil\n"
    "```\n````\n</details>@everyone #1 !1 [click](https://evil.example) <img src=x onerror=alert(1)> ![i](//e) "
    "<!-- treeplane diff --> \u202egnp.exe `a` /close %0A::warning::y | a & &amp; \u2028 \ud800"
)


def evil_review() -> ChangeReview:
    name = ObjectName("root:a", "ConfigMap", "configmaps", EVIL, EVIL)
    fields = (
        FieldChange(f"data[{EVIL}]", EVIL, f"{EVIL}\nmore"),
        FieldChange("data.same", "a", EVIL),
        FieldChange("data.new", ABSENT, {EVIL: EVIL}),
        FieldChange("data.secret", HIDDEN, HIDDEN),
    )
    changed = ObjectDifference(name, ChangeKind.CONFIGURED, EVIL, fields)
    why = (LayoutError(EVIL, 3, 1, EVIL, EVIL), LayoutError("workspaces/root/b/x.yaml", 2, 0, EVIL))
    refused = RefusedDeletion((Loss(Line("root:a", "roles.rbac.authorization.k8s.io", "", EVIL), EVIL),), EVIL)
    return ChangeReview(
        EVIL,
        EVIL,
        (own("a" * 40), own("b" * 40)),
        (FieldChange(f"spec[{EVIL}]", ABSENT, EVIL),),
        (
            WorkspaceDifference("root:a", ChangeKind.CONFIGURED, (changed,)),
            WorkspaceDifference(EVIL, ChangeKind.HELD, why=why),
            WorkspaceDifference("root:c", ChangeKind.MOVED, moved_from=EVIL),
        ),
        (TargetDifference(EVIL, (CopyChange("gets", name, EVIL, EVIL), CopyChange("loses", name, EVIL, EVIL))),),
        (LayoutError("treeplane.yaml", 0, 0, EVIL),),
        (Warned(EVIL, EVIL, EVIL),),
        {EVIL: refused},
        {EVIL: EVIL},
        (EVIL,),
        (ReviewedCommit("c" * 40, EVIL, EVIL, PushedBy(EVIL, SERVER)), ReviewedCommit("d" * 40, EVIL, EVIL)),
    )


@pytest.mark.parametrize("form", sorted(FORMS))
def test_what_a_stranger_says(form: str, update_golden: bool) -> None:
    found = re.sub(r'("version": )"(?!2\.1)[^"]*"', r'\1"…"', FORMS[form](evil_review()))
    golden = HERE / f"{form}.txt"
    if update_golden:
        golden.write_text(found)
    assert found == golden.read_text()


@pytest.mark.parametrize("form", sorted(FORMS))
def test_no_line_is_a_command_and_no_character_acts(form: str) -> None:
    """Ours begin with two colons in GitHub's form alone, each of the one kind."""
    found = FORMS[form](evil_review())
    for line in found.split("\n"):
        assert line.isprintable(), line
        assert "##[" not in line, line
        assert "##vso[" not in line, line
        if form == "github":
            assert re.match(r"::(error|warning|notice)( [a-z]+=[^:,]*(,[a-z]+=[^:,]*)*)?::", line) or not line
        else:
            assert not line.lstrip().startswith("::"), line
            assert not line.startswith("/"), line


def test_markdown_shows_text_and_nothing_else() -> None:
    """Read as CommonMark: no link, image, mention or tag but our own."""
    found = FORMS["markdown"](evil_review())
    for token in tokens(MarkdownIt("commonmark", {"html": True}).enable("table").parse(found)):
        assert token.type not in ("link_open", "image", "html_inline"), token
        if token.type == "html_block":
            ours = r"<details><summary>Workspace <code>[\w:&#;./-]+</code> [\w ,]+</summary>|</details>"
            assert re.fullmatch(ours, token.content.strip()), token
        if token.type == "text":
            assert "@" not in token.content, token
            assert "evil" not in token.content, token
            assert not re.search(r"[#!]\d", token.content), token


def tokens(found: list[Token]) -> list[Token]:
    return [each for token in found for each in (token, *tokens(token.children or []))]


def test_programs_read_what_was_said() -> None:
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        found: Any = read(FORMS[form](evil_review()))
        assert found["held"] is True
        assert found["workspaces"][0]["path"] == "root:a"
        [secret] = [each for each in found["workspaces"][0]["objects"][0]["fields"] if each["field"] == "data.secret"]
        assert secret == {"field": "data.secret", "hidden": ["from", "to"]}


def many(count: int) -> ChangeReview:
    errors = tuple(LayoutError(f"workspaces/root/a/{n:05}.yaml", 1, 0, "is wrong") for n in range(count))
    objects = tuple(
        ObjectDifference(ObjectName("root:a", "ConfigMap", "configmaps", "d", f"c{n}"), ChangeKind.CREATED, "f" * 200)
        for n in range(200)
    )
    spaces = tuple(WorkspaceDifference(f"root:b{n}", ChangeKind.CREATED, objects) for n in range(100))
    warnings = tuple(Warned("root:a", "", f"warning {n}") for n in range(count))
    held = WorkspaceDifference("root:a", ChangeKind.HELD, why=errors)
    return ChangeReview("a", "b", (own("a" * 40), own("b" * 40)), workspaces=(held, *spaces), warnings=warnings)


def test_what_is_too_much_for_a_forge_is_counted() -> None:
    review = many(6000)
    markdown = FORMS["markdown"](review)
    assert len(markdown) <= MOST
    assert "and 5,950 more errors" in markdown
    assert re.search(r"…and \d+ more parts", markdown)
    assert markdown.count("<details>") == markdown.count("</details>") > 0
    sarif = json.loads(FORMS["sarif"](review))
    [run] = sarif["runs"]
    assert len(run["results"]) == 5000
    assert run["results"][-1]["message"]["text"] == "and 7001 more"
    lines = FORMS["github"](review).splitlines()
    for kind in ("error", "warning"):
        assert sum(line.startswith(f"::{kind}") for line in lines) == 10
    assert "::error::and 5,991 more errors: run treeplane diff to see all" in lines


def test_sarif_is_what_its_schema_says() -> None:
    """The properties that 2.1.0 requires, of every result."""
    [run] = json.loads(FORMS["sarif"](evil_review()))["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in ("error", "warning", "note")
        place = result["locations"][0]["physicalLocation"]
        assert re.fullmatch(r"[A-Za-z0-9%/._~-]+", place["artifactLocation"]["uri"])
        assert place["region"]["startLine"] >= 1
        assert not re.search(r"(?<!\\)\[", result["message"]["text"])
