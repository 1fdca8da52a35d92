"""`treeplane validate --rev`: what a commit would take away from what is served, before it is pushed."""

from __future__ import annotations

import json

import pytest
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.manyobjects import MANY

from reconciler.commands.failure import Failure
from reconciler.commands.validate import validate_revision


def test_the_hash_is_the_servers(fleet: LoadedFleet) -> None:
    fleet.publish()
    served = fleet.repo.head
    fleet.repo.commit({**dict.fromkeys(MANY), B: None})
    checked = validate_revision(fleet.repo.path, "main")
    assert checked.base.id == served
    assert set(checked.refused) == {"root:a", "root:b"}
    fleet.load()
    assert sorted(map(str, checked.problems)) == sorted(text for found in fleet.held().values() for text in found)
    text = checked.render("text")
    assert "  root:a configmaps default/m11\n" in text
    [command] = [line for line in text.splitlines() if line.startswith("  git commit --allow-empty")]
    assert text.endswith(f"2 errors in 4 workspaces, compared with {served:.10}\n")
    fleet.repo.commit({}, f"Allow it\n\n{command.rpartition(' -m ')[2].strip(chr(39))}\n")
    assert validate_revision(fleet.repo.path, "main").problems == ()
    fleet.load()
    assert fleet.held() == {}


def test_a_program_can_read_it(fleet: LoadedFleet) -> None:
    fleet.publish()
    fleet.repo.commit({B: None})
    found = json.loads(validate_revision(fleet.repo.path, "main").render("json"))
    [deletion] = found["deletions"]
    assert deletion["workspace"] == "root:b"
    assert deletion["reason"] == "root:b is protected: it has manifests"
    assert deletion["lines"] == ["root workspaces.tenancy.kcp.io /b", "root:b configmaps default/app"]
    assert len(deletion["hash"]) == 40


def test_a_branch_beside_what_is_served_is_compared_with_where_it_began(fleet: LoadedFleet) -> None:
    base = fleet.repo.head
    fleet.commit({f"{B}/more.yaml": configmap("more")})
    fleet.publish()
    head = fleet.repo.head
    first = fleet.repo.commit(dict.fromkeys(list(MANY)[:6]), parent=base)
    proposal = fleet.repo.commit(dict.fromkeys(list(MANY)[6:]), parent=first)
    fleet.repo.reset(head)
    checked = validate_revision(fleet.repo.path, proposal)
    assert checked.base.id == base
    # As one difference: none of its commits by itself takes ten away.
    assert set(checked.refused) == {"root:a"}
    assert len(checked.refused["root:a"].lines()) == 12


def test_any_two_commits_can_be_compared(fleet: LoadedFleet) -> None:
    base = fleet.repo.head
    fleet.repo.commit(dict.fromkeys(MANY))
    assert set(validate_revision(fleet.repo.path, "main", base).refused) == {"root:a"}
    assert validate_revision(fleet.repo.path, "main", "main").refused == {}
    with pytest.raises(Failure, match="names no commit"):
        validate_revision(fleet.repo.path, "main", "nowhere")


def test_without_a_status_branch_nothing_is_compared(fleet: LoadedFleet) -> None:
    fleet.repo.commit(dict.fromkeys(MANY))
    checked = validate_revision(fleet.repo.path, "main")
    assert (checked.base.id, checked.problems) == ("", ())
    assert "deletions" not in json.loads(checked.render("json"))


def test_what_is_served_has_a_past(fleet: LoadedFleet) -> None:
    """An error that the next commit mends is none any more; one that stays is."""
    fleet.commit({f"{B}/bad.yaml": "kind: ["})
    fleet.publish()
    fleet.repo.commit({f"{A}/app.yaml": configmap(a="c")})
    [problem] = validate_revision(fleet.repo.path, "main").problems
    assert problem.path == f"{B}/bad.yaml"
    fleet.repo.commit({f"{B}/bad.yaml": None})
    assert validate_revision(fleet.repo.path, "main").problems == ()


def test_a_base_that_was_broken_as_a_whole(fleet: LoadedFleet) -> None:
    base = fleet.repo.commit({"treeplane.yaml": "kind: ["})
    fleet.repo.commit({**dict.fromkeys(MANY), "treeplane.yaml": fleet.first_files()["treeplane.yaml"]})
    assert validate_revision(fleet.repo.path, "main", base).problems == ()
