"""Workspaces that a recovery could not bring back yet, and that a commit takes away meanwhile: nobody knows what would
go with them, so they wait, and are judged once they are back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loadedfleet import A, B, configmap
from support.sourcedfleet import SHOP, SourcedFleet, TenantRepos
from support.widgets import binding, export, schema, widget

LOST = "it was served, and cannot be brought back yet"


@pytest.fixture
def lost(tmp_path: Path) -> Iterator[SourcedFleet]:
    """Of a server that has the status branch and nothing of the tenant's repository: root:b waits for root:a."""
    tenants = TenantRepos(tmp_path / "tenants")
    files = {"deploy/app.yaml": configmap(), "deploy/schema.json": schema(), "deploy/export.json": export()}
    tenants.push(files, SHOP)
    old = SourcedFleet(tmp_path / "old", tenants)
    old.begin({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    old.source()
    old.publish()
    new = SourcedFleet(tmp_path / "new", tenants, old.repo, old.keys)
    new.by_id = True
    new.load(new.recorded())
    assert {path for path in ("root:a", "root:b") if not new.record(path).served} == {"root:a", "root:b"}
    yield new
    old.close()
    new.close()


def said(fleet: SourcedFleet) -> str:
    return " ".join(fleet.record("root:b").errors)


def test_it_stays_and_says_how_it_may_go(lost: SourcedFleet) -> None:
    was = lost.record("root:b")
    lost.commit({B: None})
    assert LOST in said(lost) and "Allow-Delete: " in said(lost)
    assert "was removed" in said(lost) and "cannot be brought back: was removed" not in said(lost)
    told = said(lost)
    lost.commit({f"{A}/more.yaml": None, "workspaces/root/app.yaml": configmap(v="2")})
    assert said(lost) == told, "the same with each commit"
    assert lost.record("root:b").cluster == was.cluster


def test_once_it_is_back_its_removal_is_judged_by_what_it_has(lost: SourcedFleet) -> None:
    was = lost.record("root:b")
    lost.commit({B: None})
    lost.follow()
    now = lost.record("root:b")
    assert now.served and (now.cluster, now.origin) == (was.cluster, was.origin)
    assert "root:b is protected: it has manifests" in said(lost) and "widgets.example.io default/w" in said(lost)
    assert lost.find("root:b", "widgets.example.io", "w"), "and it is served until that is allowed"
    lost.allow()
    assert "root:b" not in lost.paths() and not lost.fleet().kept


def test_it_goes_before_where_that_is_allowed(lost: SourcedFleet) -> None:
    was = lost.record("root:b")
    lost.commit({B: None})
    lost.allow()
    assert "root:b" not in lost.paths() and not lost.fleet().kept
    lost.commit({f"{B}/workspace.yaml": "", f"{B}/app.yaml": configmap(new="one")})
    now = lost.record("root:b")
    assert now.cluster != was.cluster and now.served, "another one, of which nothing is waited for"
    lost.follow()
    assert lost.data("root:b") == {"new": "one"} and not lost.find("root:b", "apibindings.apis.kcp.io", "widgets", "")


def test_another_one_that_is_no_good_is_not_taken_for_it(lost: SourcedFleet) -> None:
    lost.commit({B: None})
    lost.allow()
    lost.commit({f"{B}/workspace.yaml": "", f"{B}/app.yaml": "broken: [\n"})
    lost.follow()
    assert not lost.record("root:b").served and "cannot be brought back" not in said(lost)


def test_what_is_put_back_never_went(lost: SourcedFleet) -> None:
    was = lost.record("root:b")
    lost.commit({B: None})
    files = {f"{B}/workspace.yaml": "", f"{B}/app.yaml": configmap()}
    lost.commit({**files, f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    assert not lost.fleet().kept and "was removed" not in said(lost)
    lost.follow()
    now = lost.record("root:b")
    assert now.served and not now.errors and now.cluster == was.cluster


def test_a_restart_in_between_makes_no_difference(lost: SourcedFleet) -> None:
    lost.commit({B: None})
    assert "root:b" in lost.paths() and lost.fleet().kept
    lost.loader = lost.new_loader()
    lost.load()
    lost.follow()
    assert "it has manifests" in said(lost)


def test_a_held_consumer_comes_back_bound_to_what_it_was(lost: SourcedFleet, tmp_path: Path) -> None:
    lost.follow()
    lost.commit({f"{B}/w.json": None})
    before = lost.get("root:b", "apibindings.apis.kcp.io", "widgets", "")["status"]["boundResources"]
    assert before
    lost.commit({f"{B}/app.yaml": "broken: [\n"})
    lost.publish()
    new = SourcedFleet(tmp_path / "newer", lost.tenants, lost.repo, lost.keys)
    new.by_id = True
    new.load(new.recorded())
    assert "it was bound to APIExport root:a:widgets, and workspace root:a is not served" in said(new)
    new.follow()
    assert new.record("root:b").served and "broken" not in said(new)
    assert new.get("root:b", "apibindings.apis.kcp.io", "widgets", "")["status"]["boundResources"] == before
    new.close()
